//! The queries: `queries.toml`, planned for a window.

use serde::Deserialize;
use thiserror::Error;

const QUERIES: &str = include_str!("queries.toml");

/// What a query of the score measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "queries.toml says what each one is")]
pub enum ScoreMeasure {
    Requests,
    Answers,
    Late,
    Failed,
    Shed,
    WouldShed,
    Limits,
    NeedlessShed,
    NeedlessWouldShed,
    CpuUs,
    MemoryMib,
}

/// A query of the score, ready to be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreQuery {
    /// What it measures.
    pub measure: ScoreMeasure,
    /// Its name in the file.
    pub name: String,
    /// The expression.
    pub promql: String,
}

/// The file of the queries is wrong, which a test excludes.
#[derive(Debug, Error)]
#[error("queries.toml: {0}")]
pub struct ScoreQueriesError(#[from] toml::de::Error);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueriesDocument {
    overloaded: String,
    queries: toml::Table,
}

/// All queries for a window, the requests first; both times are in seconds.
///
/// # Errors
/// If the file of the queries is wrong, which a test excludes.
pub fn score_queries(
    window_seconds: u32,
    step_seconds: u32,
) -> Result<Vec<ScoreQuery>, ScoreQueriesError> {
    let document: QueriesDocument = toml::from_str(QUERIES)?;
    let planned = |(name, text): (String, toml::Value)| {
        let measure: ScoreMeasure = toml::Value::from(name.clone()).try_into()?;
        let text: String = text.try_into()?;
        Ok(ScoreQuery {
            measure,
            name,
            promql: text
                .replace("$overloaded", &document.overloaded)
                .replace("$window", &format!("{window_seconds}s"))
                .replace("$step", &format!("{step_seconds}s")),
        })
    };
    let planned: Result<Vec<ScoreQuery>, ScoreQueriesError> =
        document.queries.into_iter().map(planned).collect();
    let mut planned = planned?;
    planned.sort_by_key(|query| query.measure);
    Ok(planned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_query_has_its_times() {
        let planned = score_queries(3_600, 300).unwrap();
        assert_eq!(planned.len(), 11);
        assert!(planned.iter().all(|query| !query.promql.contains('$')));
        let of = |measure| {
            let query = planned.iter().find(|query| query.measure == measure);
            query.unwrap().promql.clone()
        };
        assert!(of(ScoreMeasure::NeedlessShed).ends_with("[3600s:300s]))"));
    }
}
