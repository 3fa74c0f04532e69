//! Writes and their users, from the API server's audit log.
//!
//! A controller that writes needlessly keeps a cluster busy and wakes all watchers. The server, which logs every request that
//! changes something, shows whether it does.

use serde::Deserialize;

/// A request that changes something, as logged when it ended.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Write {
    /// The verb: create, update, patch, delete, deletecollection.
    pub verb: String,
    /// The user.
    pub user: Who,
    /// The object, if the request has one.
    pub object_ref: Option<Object>,
    /// The response.
    pub response_status: Option<AuditedAnswer>,
}

/// The user of a request.
#[derive(Debug, Clone, Deserialize)]
pub struct Who {
    /// The user's name.
    pub username: String,
}

/// The object of a request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Object {
    /// Plural of its kind.
    pub resource: String,
    /// Its namespace; empty for objects of the cluster.
    pub namespace: String,
    /// Its name; empty if the server chose it.
    pub name: String,
    /// `status` and the like; empty without.
    pub subresource: String,
}

/// The response to a request.
#[derive(Debug, Clone, Deserialize)]
pub struct AuditedAnswer {
    /// HTTP status.
    pub code: u16,
}

impl Write {
    /// The plural of the kind of object, with its subresource: `breakerpolicies/status`.
    #[must_use]
    pub fn what(&self) -> String {
        let object = self.object_ref.clone().unwrap_or_default();
        if object.subresource.is_empty() {
            object.resource
        } else {
            format!("{}/{}", object.resource, object.subresource)
        }
    }

    /// The namespace of the object.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.object_ref
            .as_ref()
            .map_or("", |object| &object.namespace)
    }
}

/// The API server's audit policy, which selects what it records.
pub(crate) const POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
  "omitStages": ["RequestReceived", "ResponseStarted", "Panic"],
  "rules": [
    {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
    {"level": "None"}
  ]
}"#;

/// Reads the record, except a line that is still being written.
pub(crate) fn read(text: &str) -> Vec<Write> {
    let lines = text.lines();
    lines
        .filter_map(|line| serde_json::from_str(line).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_tells_who_wrote_what_and_half_a_line_is_left_out() {
        let line = r#"{"kind":"Event","verb":"patch","user":{"username":"ann"},"objectRef":{"resource":"pods","namespace":"a","name":"p","subresource":"status"},"responseStatus":{"code":200}}"#;

        let writes = read(&format!("{line}\n{}", &line[..40]));

        assert_eq!(writes.len(), 1);
        assert_eq!(writes[0].user.username, "ann");
        assert_eq!(writes[0].what(), "pods/status");
        assert_eq!(writes[0].namespace(), "a");
    }
}
