//! Writes and their users: the API server's own record.
//!
//! A controller that writes without need keeps a cluster busy and wakes all that watch. Whether it does is
//! asked of the server, which writes a line for every request that changes something.

use serde::Deserialize;

/// A request that changes something, as the API server saw it end.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Write {
    /// What was asked: create, update, patch, delete, deletecollection.
    pub verb: String,
    /// Who asked.
    pub user: Who,
    /// The object; requests without one have none.
    pub object_ref: Option<Object>,
    /// How it was answered.
    pub response_status: Option<AuditedAnswer>,
}

/// Who asked.
#[derive(Debug, Clone, Deserialize)]
pub struct Who {
    /// The user's name.
    pub username: String,
}

/// Which object was meant.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Object {
    /// Plural of its kind.
    pub resource: String,
    /// Its namespace; empty for objects of the cluster.
    pub namespace: String,
    /// Its name; empty where the server chose it.
    pub name: String,
    /// `status` and the like.
    pub subresource: String,
}

/// How a request was answered.
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

/// The API server's policy: what it records.
pub(crate) const POLICY: &str = r#"{
  "apiVersion": "audit.k8s.io/v1", "kind": "Policy",
  "omitStages": ["RequestReceived", "ResponseStarted", "Panic"],
  "rules": [
    {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
    {"level": "None"}
  ]
}"#;

/// Reads the record; a line that is being written just now is left out.
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
