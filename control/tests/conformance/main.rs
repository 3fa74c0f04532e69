//! Tidegate in a mesh: `make conformance`.
//!
//! The mesh has a real API server, a real istiod, real Envoys, and the control service and the module as they ship.
//! Each module below is one property that an operator relies on. It describes what is applied, what happens, and what
//! the test sees. A case is an async function that takes the mesh and is in the list below. A case that stops a server
//! has its own mesh. The support: [`mesh`] (the servers, and what is applied to them), [`agents`] and [`ambient`]
//! (proxies as Istio runs them), [`load`] (many requests and their answers), [`door`] and [`place`] (a service with one
//! place, and a gateway in front of it). [`world`], [`service`], [`policies`] and [`incident_page`] come from the tests
//! with only an API server.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first unexpected result"
)]

mod agents;
mod ambient;
mod door;
#[path = "../kube/incident_page.rs"]
#[allow(dead_code, reason = "the tests of a release use the rest")]
mod incident_page;
mod load;
mod mesh;
mod place;
#[path = "../kube/policies.rs"]
#[allow(dead_code, reason = "the tests of the definition use the rest")]
mod policies;
#[path = "../kube/service.rs"]
#[allow(dead_code, reason = "the tests of the service use the rest")]
mod service;
#[path = "../kube/world.rs"]
#[allow(dead_code, reason = "the tests of the service use the rest")]
mod world;

mod apis;
mod contests;
mod deletion;
mod egress;
mod gateway;
mod incident;
mod injection;
mod kept;
mod missing;
mod mtls;
mod outages;
mod pull_secret;
mod push;
mod rejection;
mod sidecar;
mod waypoint;

use std::process::ExitCode;

use tidegate_meshbed::{cases, suite};

use mesh::ConformanceMesh;

fn main() -> ExitCode {
    suite::play(
        ConformanceMesh::start,
        cases![
            gateway::a_policy_sheds_what_is_beyond_the_capacity_behind_a_gateway,
            gateway::a_changed_policy_is_soon_in_traffic,
            sidecar::one_policy_guards_both_directions_with_a_state_for_each_service,
            egress::clusters_with_several_destinations_are_not_counted,
            waypoint::each_service_behind_a_waypoint_has_its_own_limit,
            mtls::a_module_from_a_registry_guards_a_service_behind_mtls,
            missing::without_its_module_a_proxy_lets_all_requests_pass_or_none,
            missing::both_layouts_of_the_image_are_fetched,
            pull_secret::a_registry_that_asks_for_a_password_gets_the_pull_secret,
            injection::a_pod_of_the_example_gets_a_sidecar_whose_metrics_have_our_labels,
            kept::a_push_through_an_agent_keeps_the_vm_and_loses_no_request,
            push::a_push_under_load_loses_no_request_and_keeps_what_was_learned,
            apis::without_traffic_extensions_wasm_plugins_carry_policies_and_an_upgrade_is_followed,
            rejection::an_error_that_the_definition_finds_is_rejected_on_apply,
            rejection::what_only_the_filter_could_reject_is_not_pushed_to_it,
            deletion::deleting_a_policy_takes_the_filter_out_and_nothing_else,
            deletion::without_the_service_kubernetes_removes_what_a_policy_owned,
            incident::the_commands_of_the_incident_page_let_all_requests_pass_and_shed_again,
            contests::the_older_of_two_policies_for_one_target_is_in_traffic,
            contests::an_object_of_another_owner_with_the_same_name_stays,
            contests::a_field_that_another_owner_takes_stays_theirs_until_they_release_it,
            outages::protection_outlives_everything_that_configures_it,
            outages::the_service_converges_when_the_api_server_is_back_and_does_not_hammer_it,
        ],
    )
}
