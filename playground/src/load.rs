//! A load curve that can be drawn: parts of equal length, each with a level.
//!
//! Its text is short, because it is in a link: `0.7*10,3*10,0.7` is ten parts at 0.7, ten at 3 and one at 0.7, in multiples
//! of the capacity. The parts share the run evenly.

use std::time::Duration;

use tidegate_sim::scenario::LoadPoint;

/// Most parts of a curve.
pub const MOST_PARTS: usize = 60;
/// The greatest level, as a multiple of the capacity.
pub const MOST_LEVEL: f64 = 10.0;

/// Levels in order of time, at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadCurve(Vec<f64>);

impl LoadCurve {
    /// Reads a curve.
    ///
    /// # Errors
    /// With what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut levels = Vec::new();
        for group in text.split(',') {
            let (level, count) = group.split_once('*').unwrap_or((group, "1"));
            let level = level.parse::<f64>().ok();
            let level = level.filter(|level| (0.0..=MOST_LEVEL).contains(level));
            let count = count.parse::<usize>().ok();
            let count = count.filter(|count| (1..=MOST_PARTS).contains(count));
            let (Some(level), Some(count)) = (level, count) else {
                return Err(format!(
                    "load: found {group}, expected a level of 0 to {MOST_LEVEL}, or 0.7*10 for ten parts of it"
                ));
            };
            levels.extend(std::iter::repeat_n(level, count));
        }
        if levels.len() > MOST_PARTS {
            let found = levels.len();
            return Err(format!(
                "load: found {found} parts, expected at most {MOST_PARTS}"
            ));
        }
        Ok(Self(levels))
    }

    /// The levels.
    #[must_use]
    pub fn levels(&self) -> &[f64] {
        &self.0
    }

    /// The mean of the levels.
    #[must_use]
    pub fn mean(&self) -> f64 {
        let count = u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        self.0.iter().sum::<f64>() / f64::from(count)
    }

    /// The text that reads back as this curve.
    #[must_use]
    pub fn text(&self) -> String {
        let groups = self.groups();
        let groups = groups.iter().map(|(level, count)| match count {
            1 => format!("{level}"),
            _ => format!("{level}*{count}"),
        });
        groups.collect::<Vec<_>>().join(",")
    }

    /// The load of a run of this length: a step where the level changes.
    #[must_use]
    pub fn points(&self, duration: Duration) -> Vec<LoadPoint> {
        let part = duration / u32::try_from(self.0.len()).unwrap_or(u32::MAX);
        let mut before = 0;
        let mut points = Vec::new();
        for (level, count) in self.groups() {
            points.push(LoadPoint {
                at: part * before,
                x: Some(level),
                rps: None,
                ramp: false,
            });
            before += count;
        }
        points
    }

    /// Levels, and for how many parts each lasts.
    fn groups(&self) -> Vec<(f64, u32)> {
        let mut groups: Vec<(f64, u32)> = Vec::new();
        for level in &self.0 {
            match groups.last_mut() {
                Some((last, count)) if last.to_bits() == level.to_bits() => *count += 1,
                _ => groups.push((*level, 1)),
            }
        }
        groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_reads_back_and_becomes_steps() {
        let curve = LoadCurve::parse("0.7*2,3,0.7").unwrap();
        assert_eq!(curve.levels(), [0.7, 0.7, 3.0, 0.7]);
        assert_eq!(curve.text(), "0.7*2,3,0.7");
        let points = curve.points(Duration::from_secs(8));
        let points: Vec<_> = points.iter().map(|p| (p.at.as_secs(), p.x)).collect();
        assert_eq!(points, [(0, Some(0.7)), (4, Some(3.0)), (6, Some(0.7))]);
        assert!((curve.mean() - 1.275).abs() < 1e-12);
    }

    #[test]
    fn what_is_no_curve_is_refused() {
        for wrong in ["", "x", "1,", "-1", "11", "1*0", "1*61", "1*40,2*21", "NaN"] {
            let found = LoadCurve::parse(wrong);
            assert!(found.is_err(), "{wrong}: {found:?}");
        }
    }
}
