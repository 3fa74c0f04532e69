//! The service's tests that need no server: each file tests one part.
//!
//! They are one program, because linking one for each file takes longer than the tests.

mod advice;
mod any_input;
mod command_line;
mod contests;
mod definition;
mod migrating;
mod pages;
mod policies_rejected;
mod rendering;
mod scoring;
mod settings;
mod status_tls;
mod xds_properties;
