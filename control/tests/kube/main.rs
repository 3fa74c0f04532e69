//! The control service against a real Kubernetes API server: `make test-kube`.
//!
//! One API server serves all cases. Each case has its own namespace. A case that stops an API server has its own API
//! server. The support: [`world`] (what cases share), [`policies`] (how a policy is rejected), [`service`] (the service
//! as a process, with its rights), [`follower`] (a replica of the service that follows one namespace), [`written`]
//! (what replicas have written) and [`incident_page`] (the commands of the incident page). All other modules contain
//! cases. A case is an async function that takes the world and is in the list below.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test stops at the first unexpected result"
)]

mod follower;
#[allow(dead_code, reason = "the tests in a mesh use the rest")]
mod incident_page;
mod policies;
mod service;
mod world;
mod written;

mod admission;
mod definition;
mod incident;
mod pools;
mod reconcile;
mod replicas;
mod resource;
mod rights;
mod scope;
mod steadiness;

use std::process::ExitCode;

use tidegate_meshbed::{cases, suite};

use world::TestCluster;

fn main() -> ExitCode {
    suite::play(
        TestCluster::start,
        cases![
            definition::every_rule_rejects_and_says_what_is_expected,
            definition::every_error_of_one_policy_is_reported,
            definition::a_value_outside_its_range_is_rejected_at_its_path,
            definition::what_is_missing_or_unknown_is_rejected_by_name,
            definition::what_the_documents_show_is_accepted,
            definition::values_at_the_bounds_are_accepted,
            resource::the_server_adds_no_default_values,
            resource::the_status_is_written_apart_from_the_rest,
            resource::the_columns_show_mode_objective_and_conditions,
            resource::it_is_found_by_its_short_name_and_category,
            resource::a_user_without_rights_reads_and_writes_nothing,
            reconcile::traffic_extensions_follow_policies,
            reconcile::wasm_plugins_follow_policies,
            reconcile::a_plugin_that_is_deleted_by_hand_comes_back,
            reconcile::fields_that_another_owner_takes_stay_and_are_reported,
            reconcile::an_object_of_another_owner_is_not_changed,
            reconcile::an_overruled_policy_reports_it_and_takes_over_later,
            reconcile::an_error_that_only_the_service_finds_keeps_the_valid_version,
            reconcile::an_annotation_of_the_lease_turns_all_policies_off,
            incident::a_policy_goes_off_and_on_by_the_page_s_commands,
            incident::all_policies_go_off_and_on_by_the_page_s_commands,
            incident::traffic_extensions_are_switched_by_the_page_s_commands,
            incident::wasm_plugins_are_switched_by_the_page_s_commands,
            rights::what_the_service_names_as_its_rights_is_enough,
            rights::without_rights_it_logs_the_missing_right_and_stays_alive,
            replicas::a_killed_leader_is_followed_by_the_other_replica,
            replicas::a_leader_that_is_asked_to_end_gives_the_lease_back,
            steadiness::what_is_in_force_is_not_written_again,
            steadiness::a_new_replica_finds_nothing_to_do,
            steadiness::it_converges_when_the_api_server_is_back,
            scope::it_writes_in_its_own_namespace_only,
            pools::a_pool_that_is_tighter_than_the_policy_is_a_condition,
            admission::a_stolen_token_puts_no_other_code_into_proxies,
            admission::the_service_writes_the_module_that_is_installed_and_no_other,
            admission::proxies_are_named_from_the_namespaces_of_the_service_only,
        ],
    )
}
