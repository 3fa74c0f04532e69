//! The service as a process, with its own account and the rights that it needs.

use serde_json::{Value, json};
use tidegate_control::kube::rights::{RIGHTS, RightScope};
use tidegate_meshbed::accounts::{self, Grant};
use tidegate_meshbed::{Replica, User, release};

use crate::world::TestCluster;

/// The module. These tests do not run it.
pub(crate) const MODULE: &str = "oci://registry.example.com/tidegate/filter:tested";

/// The digest of the module. These tests do not check it.
pub(crate) const SHA256: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// Where an account may act.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rights {
    /// In all namespaces.
    Cluster,
    /// In its own.
    Namespace,
    /// Nowhere.
    None,
}

/// The service's rules for this scope.
fn rules(place: RightScope) -> Value {
    let rules = RIGHTS.iter().filter(|right| right.place == place);
    rules
        .map(|right| json!({"apiGroups": [right.group], "resources": right.resources, "verbs": right.verbs}))
        .collect()
}

/// Creates an account in a namespace.
pub(crate) async fn account(
    world: &TestCluster,
    namespace: &str,
    name: &str,
    rights: Rights,
) -> User {
    let grants = match rights {
        Rights::Cluster => vec![
            Grant::Everywhere(rules(RightScope::Followed)),
            Grant::Here(rules(RightScope::Lease)),
        ],
        Rights::Namespace => vec![
            Grant::Here(rules(RightScope::Followed)),
            Grant::Here(rules(RightScope::Lease)),
        ],
        Rights::None => Vec::new(),
    };
    accounts::account(&world.admin, namespace, name, &grants)
        .await
        .unwrap()
}

/// Starts a replica with its lease in `namespace`. `more` are further options.
pub(crate) async fn start(
    world: &TestCluster,
    user: &User,
    namespace: &str,
    more: &[&str],
) -> Replica {
    let options = [
        &["--extension-url", MODULE, "--extension-sha256", SHA256],
        more,
    ]
    .concat();
    run(world, user, namespace, &options).await
}

/// Starts a replica with only these options: of the program that was built here, or of the release under test.
pub(crate) async fn run(
    world: &TestCluster,
    user: &User,
    namespace: &str,
    options: &[&str],
) -> Replica {
    let program = release::program(env!("CARGO_BIN_EXE_tidegate"), world.cluster.folder());
    let replica = Replica::of(program.unwrap()).options(options);
    replica
        .start(&world.cluster, user, namespace)
        .await
        .unwrap()
}
