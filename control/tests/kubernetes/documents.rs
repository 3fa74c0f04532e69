//! The page for operators agrees with the service.

use tidegate_control::kube::rights;
use tidegate_control::kube::status::Reason;

const PAGE: &str = include_str!("../../../docs/kubernetes.md");

#[test]
fn the_documented_rights_match_the_service() {
    assert!(PAGE.contains(&rights::markdown()), "{}", rights::markdown());
}

#[test]
fn every_reason_is_explained() {
    for reason in Reason::ALL {
        let name = format!("`{}`", reason.name());
        assert!(PAGE.contains(&name), "{name}");
    }
}
