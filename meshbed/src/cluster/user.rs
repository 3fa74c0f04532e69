//! Users of the API server.

/// A user of the API server: a name and its credential.
#[derive(Debug, Clone)]
pub struct User {
    /// The name, as RBAC and the audit log know it.
    pub name: String,
    pub(super) token: String,
}

impl User {
    /// The user with this bearer token, such as a service account's.
    #[must_use]
    pub fn with_token(name: &str, token: &str) -> Self {
        Self {
            name: name.to_owned(),
            token: token.to_owned(),
        }
    }

    /// The name as a part of a file's name.
    pub(crate) fn file_name(&self) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        self.name.chars().map(plain).collect()
    }
}
