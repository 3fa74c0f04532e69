//! The values of labels that are closed sets.

use tidegate_core::{Criticality, LimitReason, ShedReason, TripReason};

use crate::faults::Fault;

pub(super) const REASONS: [&str; ShedReason::ALL.len()] = {
    let [a, b, c, d, e, f, g] = ShedReason::ALL;
    [
        a.as_str(),
        b.as_str(),
        c.as_str(),
        d.as_str(),
        e.as_str(),
        f.as_str(),
        g.as_str(),
    ]
};
pub(super) const CLASSES: [&str; Criticality::ALL.len()] = {
    let [a, b, c, d] = Criticality::ALL;
    [a.name(), b.name(), c.name(), d.name()]
};
pub(super) const TRIPS: [&str; TripReason::ALL.len()] = {
    let [a, b, c, d] = TripReason::ALL;
    [a.as_str(), b.as_str(), c.as_str(), d.as_str()]
};
pub(super) const LAWS: [&str; LimitReason::ALL.len()] = {
    let [a, b, c, d, e, f, g] = LimitReason::ALL;
    [
        a.as_str(),
        b.as_str(),
        c.as_str(),
        d.as_str(),
        e.as_str(),
        f.as_str(),
        g.as_str(),
    ]
};
pub(super) const FAULTS: [&str; Fault::ALL.len()] = {
    let [a, b, c, d, e, f, g, h] = Fault::ALL;
    [
        a.as_str(),
        b.as_str(),
        c.as_str(),
        d.as_str(),
        e.as_str(),
        f.as_str(),
        g.as_str(),
        h.as_str(),
    ]
};
