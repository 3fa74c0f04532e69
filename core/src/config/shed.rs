//! The reply to a shed request, and the cap on shedding.

use std::sync::Arc;

use super::choices::Reply;
use super::criticality::header_name;
use super::reader::Section;
use super::schema;
use crate::ratio::Ratio;

/// The reply to shed requests, and how many may be shed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShedConfig {
    reply: Reply,
    status: u16,
    /// Shared, because a thousand rules may inherit it.
    body: Arc<str>,
    max_share: Ratio,
    /// Shared like the body.
    reason_header: Option<Arc<str>>,
}

impl ShedConfig {
    /// Whether the caller should try another endpoint.
    #[must_use]
    pub const fn reply(&self) -> Reply {
        self.reply
    }

    /// HTTP status of the reply, `400..=599`.
    #[must_use]
    pub const fn status(&self) -> u16 {
        self.status
    }

    /// Body of the reply, at most 4096 bytes.
    #[must_use]
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Greatest share of an upstream's requests that may be shed, `0..=1`.
    #[must_use]
    pub const fn max_share(&self) -> Ratio {
        self.max_share
    }

    /// Response header with the reason, in lower case; `None`: the reply has none.
    #[must_use]
    pub fn reason_header(&self) -> Option<&str> {
        self.reason_header.as_deref()
    }

    pub(super) fn read(s: &mut Section<'_>, parent: Option<&Self>) -> Self {
        let reply = s.choice_or(schema::SHED_REPLY, parent.map(Self::reply));
        let status = s.count(schema::SHED_STATUS, parent.map(|shed| shed.status.into()));
        Self {
            reply,
            // The range of the schema ends at 599.
            status: u16::try_from(status).unwrap_or(u16::MAX),
            body: s
                .text("body", &schema::BODY_EXPECTED, |text| {
                    (text.len() <= schema::MAX_BODY_BYTES).then(|| Arc::from(text))
                })
                .or_else(|| parent.map(|shed| Arc::clone(&shed.body)))
                .unwrap_or_default(),
            max_share: s.fraction(schema::MAX_SHARE, parent.map(Self::max_share)),
            reason_header: s
                .text(
                    "reasonHeader",
                    &schema::REASON_HEADER_EXPECTED,
                    reason_header,
                )
                .or_else(|| parent.and_then(|shed| shed.reason_header.clone())),
        }
    }
}

/// A name that no proxy gives a meaning: not that of a header that Envoy, HTTP or the reply itself uses.
fn reason_header(name: &str) -> Option<Arc<str>> {
    let is_own = name.starts_with("x-") && !name.starts_with("x-envoy-");
    header_name(name).filter(|_| is_own).map(Arc::from)
}
