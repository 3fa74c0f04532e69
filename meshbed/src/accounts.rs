//! Service accounts with exactly the rights that a test gives them.

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, PostParams};
use serde_json::{Value, json};

use crate::cluster::{ClusterError, User};

/// RBAC rules and their scope.
#[derive(Debug, Clone)]
pub enum Grant {
    /// In all namespaces.
    Everywhere(Value),
    /// In the account's own namespace.
    Here(Value),
}

/// Creates an account in a namespace, gives it rights, and requests a token.
///
/// # Errors
/// When the API server refuses one of the objects.
pub async fn account(
    admin: &Client,
    namespace: &str,
    name: &str,
    grants: &[Grant],
) -> Result<User, ClusterError> {
    let accounts: Api<ServiceAccount> = Api::namespaced(admin.clone(), namespace);
    let mut account = ServiceAccount::default();
    account.metadata.name = Some(name.to_owned());
    accounts.create(&PostParams::default(), &account).await?;
    for (number, grant) in grants.iter().enumerate() {
        grant.give(admin, namespace, name, number).await?;
    }
    let request = TokenRequest::default();
    let answer = accounts
        .create_token_request(name, &PostParams::default(), &request)
        .await?;
    let token = answer.status.map(|status| status.token).unwrap_or_default();
    let full_name = format!("system:serviceaccount:{namespace}:{name}");
    Ok(User::with_token(&full_name, &token))
}

impl Grant {
    async fn give(
        &self,
        admin: &Client,
        namespace: &str,
        account: &str,
        number: usize,
    ) -> Result<(), kube::Error> {
        let (rules, prefix) = match self {
            Self::Everywhere(rules) => (rules, "Cluster"),
            Self::Here(rules) => (rules, ""),
        };
        let role = format!("{prefix}Role");
        let name = format!("{namespace}-{account}-{number}");
        let binding = json!({
            "metadata": {"name": name},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": role, "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
        });
        let documents = [
            (role, json!({"metadata": {"name": name}, "rules": rules})),
            (format!("{prefix}RoleBinding"), binding),
        ];
        for (kind, document) in documents {
            let kind = GroupVersionKind::gvk("rbac.authorization.k8s.io", "v1", &kind);
            let resource = ApiResource::from_gvk(&kind);
            let api: Api<DynamicObject> = match self {
                Self::Everywhere(_) => Api::all_with(admin.clone(), &resource),
                Self::Here(_) => Api::namespaced_with(admin.clone(), namespace, &resource),
            };
            let object = serde_json::from_value(document).map_err(kube::Error::SerdeError)?;
            api.create(&PostParams::default(), &object).await?;
        }
        Ok(())
    }
}
