//! How etcd and the API server are started, and the files that they read.

use std::fs;
use std::path::Path;
use std::process::Command;

use tidegate_supervise::{Log, Process};

use super::{ClusterError, KubeCluster, READY_WITHIN, User};
use crate::audit;
use crate::certificates::Certificates;
use crate::place::{self, Missing};
use crate::ports;

/// An address for documentation, which no machine has.
const NOWHERE: &str = "192.0.2.1";

pub(super) const AUDIT_LOG: &str = "audit.jsonl";

impl KubeCluster {
    pub(super) fn command(&self) -> Result<Command, Missing> {
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let mut command = Command::new(place::binary("kube-apiserver")?);
        for (option, value) in [
            (
                "etcd-servers",
                format!("http://127.0.0.1:{}", self.etcd_port),
            ),
            ("bind-address", "127.0.0.1".to_owned()),
            ("secure-port", self.port.to_string()),
            ("tls-cert-file", file("server.crt")),
            ("tls-private-key-file", file("server.key")),
            ("cert-dir", file("certificates")),
            ("token-auth-file", file("users.csv")),
            ("authorization-mode", "RBAC".to_owned()),
            (
                "service-account-issuer",
                "https://kubernetes.default.svc".to_owned(),
            ),
            ("service-account-key-file", file("token.pub")),
            ("service-account-signing-key-file", file("token.key")),
            ("service-cluster-ip-range", "10.0.0.0/24".to_owned()),
            // Nothing creates the accounts and tokens that it would wait for.
            ("disable-admission-plugins", "ServiceAccount".to_owned()),
            // It would announce an address, but rejects a loopback address, and finds none without a network.
            ("endpoint-reconciler-type", "none".to_owned()),
            ("advertise-address", NOWHERE.to_owned()),
            ("audit-policy-file", file("audit-policy.json")),
            ("audit-log-path", file(AUDIT_LOG)),
        ] {
            command.arg(format!("--{option}={value}"));
        }
        Ok(command)
    }
}

/// Writes keys, users and the audit policy; returns an admin and a stranger.
pub(super) fn write_files(folder: &Path) -> Result<(User, User), ClusterError> {
    let certificates = Certificates::make()?;
    let user =
        |name: &str| User::with_token(name, &format!("{name}-{:032x}", rand::random::<u128>()));
    let (admin, stranger) = (user("admin"), user("stranger"));
    let users = format!(
        "{},admin,1,\"system:masters\"\n{},stranger,2\n",
        admin.token, stranger.token
    );
    for (name, text) in [
        ("ca.crt", certificates.authority.as_str()),
        ("server.crt", &certificates.server),
        ("server.key", &certificates.server_key),
        ("token.key", &certificates.token_key),
        ("token.pub", &certificates.token_public_key),
        ("users.csv", &users),
        ("audit-policy.json", audit::POLICY),
    ] {
        fs::write(folder.join(name), text)?;
    }
    Ok((admin, stranger))
}

pub(super) async fn etcd(folder: &Path, port: u16) -> Result<Process, ClusterError> {
    let client = format!("http://127.0.0.1:{port}");
    let peer = format!("http://127.0.0.1:{}", ports::free());
    let mut command = Command::new(place::binary("etcd")?);
    command.arg("--data-dir").arg(folder.join("etcd"));
    command.args([
        "--listen-client-urls",
        &client,
        "--advertise-client-urls",
        &client,
    ]);
    command.args([
        "--listen-peer-urls",
        &peer,
        "--initial-advertise-peer-urls",
        &peer,
    ]);
    command.args([
        "--initial-cluster",
        &format!("default={peer}"),
        "--log-level",
        "warn",
    ]);
    // The data need not survive a crash of the machine.
    command.arg("--unsafe-no-fsync");
    let mut process = Process::start("etcd", command, Log::In(folder))?;
    let address = ([127, 0, 0, 1], port).into();
    process.listens(address, READY_WITHIN).await?;
    Ok(process)
}
