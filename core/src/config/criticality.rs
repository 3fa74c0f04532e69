//! Where a request's criticality comes from.
//!
//! The caller's header wins, because the caller knows what the work is for.
//! Next is the first rule whose conditions all hold, and then the default. Only
//! trusted callers may send the header: remove it at the edge. Each input costs
//! a host call, so [`CriticalityConfig::needs`] says which inputs are used.

use super::pattern::{Pattern, without_query};
use super::reader::Section;
use super::schema;
use crate::criticality::Criticality;

/// Longest header or method name, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// How requests get their criticality.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalityConfig {
    header: Option<Box<str>>,
    default: Criticality,
    cohort_header: Option<Box<str>>,
    cohort_key: Option<Box<str>>,
    rules: Vec<CriticalityRule>,
}

/// Which inputs the rules use. An input that is `false` need not be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CriticalityNeeds {
    /// The request's `:path`.
    pub path: bool,
    /// The request's `:method`.
    pub method: bool,
    /// The URI in the client's certificate.
    pub client_identity: bool,
}

/// The inputs of the rules; `None` if an input was not read or does not exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CriticalityInputs<'a> {
    /// The request's `:path`; its query is ignored.
    pub path: Option<&'a str>,
    /// The request's `:method`.
    pub method: Option<&'a str>,
    /// The URI in the client's certificate, such as
    /// `spiffe://cluster.local/ns/shop/sa/web`.
    pub client_identity: Option<&'a str>,
}

impl CriticalityConfig {
    /// Header with the class of a request, in lower case; `None`: not read.
    #[must_use]
    pub fn header(&self) -> Option<&str> {
        self.header.as_deref()
    }

    /// Whether requests can have different classes.
    #[must_use]
    pub fn tells_apart(&self) -> bool {
        self.header.is_some() || !self.rules.is_empty()
    }

    /// Criticality of a request if neither the header nor a rule gives one.
    #[must_use]
    pub const fn default_class(&self) -> Criticality {
        self.default
    }

    /// Header whose value tells callers of the same class apart, in lower
    /// case; `None`: not read.
    #[must_use]
    pub fn cohort_header(&self) -> Option<&str> {
        self.cohort_header.as_deref()
    }

    /// What makes the cohorts of all proxies the same; `None`: each proxy has its own.
    #[must_use]
    pub fn cohort_key(&self) -> Option<&str> {
        self.cohort_key.as_deref()
    }

    /// The inputs that [`Self::by_rules`] uses.
    #[must_use]
    pub fn needs(&self) -> CriticalityNeeds {
        CriticalityNeeds {
            path: self.rules.iter().any(|rule| rule.path.is_some()),
            method: self.rules.iter().any(|rule| rule.method.is_some()),
            client_identity: self.rules.iter().any(|rule| rule.client_identity.is_some()),
        }
    }

    /// The criticality of a request. `header` is the value of [`Self::header`],
    /// if the request has it. If reading the inputs costs something, call
    /// [`Criticality::from_header`] first, and [`Self::by_rules`] only without a result.
    #[must_use]
    pub fn classify(&self, header: Option<&str>, inputs: &CriticalityInputs<'_>) -> Criticality {
        header
            .filter(|_| self.header.is_some())
            .and_then(Criticality::from_header)
            .unwrap_or_else(|| self.by_rules(inputs))
    }

    /// The criticality by the first rule that holds, or else the default.
    #[must_use]
    pub fn by_rules(&self, inputs: &CriticalityInputs<'_>) -> Criticality {
        self.rules
            .iter()
            .find(|rule| rule.holds(inputs))
            .map_or(self.default, |rule| rule.class)
    }

    /// The position of the rule that [`Self::by_rules`] follows; `None`: the default.
    #[must_use]
    pub fn rule_for(&self, inputs: &CriticalityInputs<'_>) -> Option<usize> {
        self.rules.iter().position(|rule| rule.holds(inputs))
    }

    pub(super) fn read(s: &mut Section<'_>) -> Self {
        let (default_key, default) = schema::DEFAULT_CRITICALITY;
        Self {
            header: s.text("header", &schema::HEADER_EXPECTED, header_name),
            default: s.choice(default_key).unwrap_or(default),
            cohort_header: s.text("cohortHeader", &schema::HEADER_EXPECTED, header_name),
            cohort_key: s.text("cohortKey", &schema::KEY_EXPECTED, |text| {
                (1..=schema::MAX_KEY_BYTES)
                    .contains(&text.len())
                    .then(|| text.into())
            }),
            rules: s.objects("rules", schema::MAX_ENTRIES, CriticalityRule::read),
        }
    }
}

/// One entry of `criticality.rules`. All its conditions must hold.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CriticalityRule {
    path: Option<Pattern>,
    method: Option<Box<str>>,
    client_identity: Option<Pattern>,
    class: Criticality,
}

impl CriticalityRule {
    fn holds(&self, inputs: &CriticalityInputs<'_>) -> bool {
        let path = inputs.path.map(without_query);
        let is_method = |wanted: &str| inputs.method.is_some_and(|method| method == wanted);
        is_match(self.path.as_ref(), path)
            && self.method.as_deref().is_none_or(is_method)
            && is_match(self.client_identity.as_ref(), inputs.client_identity)
    }

    fn read(s: &mut Section<'_>) -> Self {
        let errors = s.error_count();
        let path = s.text("path", &schema::PATH_EXPECTED, Pattern::path);
        let method = s.text("method", &schema::METHOD_EXPECTED, method_name);
        let client_identity = s.text("clientIdentity", &schema::NAME_EXPECTED, Pattern::parse);
        let has_condition = path.is_some() || method.is_some() || client_identity.is_some();
        if !has_condition && errors == s.error_count() {
            s.reject_whole(
                "no condition".to_owned(),
                "at least one of path, method, clientIdentity".to_owned(),
            );
        }
        let class = s.choice("criticality");
        if class.is_none() && !s.has("criticality") {
            s.require("criticality", &schema::OneOf(schema::names::<Criticality>));
        }
        Self {
            path,
            method,
            client_identity,
            class: class.unwrap_or(schema::DEFAULT_CRITICALITY.1),
        }
    }
}

fn is_match(pattern: Option<&Pattern>, value: Option<&str>) -> bool {
    pattern.is_none_or(|pattern| value.is_some_and(|value| pattern.matches(value)))
}

/// A field name of RFC 9110, section 5.1, in the lower case that HTTP/2 asks for.
pub(super) fn header_name(text: &str) -> Option<Box<str>> {
    let is_token =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"!#$%&'*+-.^_`|~".contains(&b);
    name(text, is_token)
}

fn method_name(text: &str) -> Option<Box<str>> {
    name(text, |b| b.is_ascii_uppercase() || b == b'-')
}

fn name(text: &str, is_allowed: impl Fn(u8) -> bool) -> Option<Box<str>> {
    let fits = (1..=MAX_NAME_BYTES).contains(&text.len());
    (fits && text.bytes().all(is_allowed)).then(|| text.into())
}
