//! The service graph from a Prometheus: read once by the commands, and on a timetable by the service.
//!
//! The service keeps the last graph that could be read, and the last failure. Nothing else waits for Prometheus: the reads run
//! on threads of their own.

mod advice_text;
mod event;
mod live;
mod overview;
mod reader;
mod terms;

pub use advice_text::{AdviceText, ObjectiveText};
pub use event::TrafficEvent;
pub use live::{GoodRead, LiveTraffic, ReadFailure, TrafficSnapshot};
pub use overview::{CallEntry, CallHealth, MAX_SERVICES, ServiceEntry, TrafficOverview, overview};
pub use reader::TrafficSettings;
pub use terms::{CredentialFiles, PrometheusTerms, TrafficError, TrafficTerms};
