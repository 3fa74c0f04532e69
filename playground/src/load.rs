//! A load curve that can be drawn: parts of equal length, each with a level.
//!
//! Its text is short, because it is in a link: `0.7*10,3*10,0.7` is ten parts at 0.7, ten at 3 and one at 0.7, in the unit that the
//! link names. The parts share the run evenly.

use std::time::Duration;

use tidegate_sim::scenario::LoadPoint;

/// Most parts of a curve.
pub const MOST_PARTS: usize = 60;

/// What a level counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadUnit {
    /// Multiples of the capacity: another service time changes the rate as well.
    Capacity,
    /// Requests a second.
    Rate,
}

impl LoadUnit {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Capacity, Self::Rate];

    /// Its name in a link.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Capacity => "capacity",
            Self::Rate => "rps",
        }
    }

    /// A unit by its name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|unit| unit.name() == name)
    }

    /// The greatest level.
    #[must_use]
    pub const fn most(self) -> f64 {
        match self {
            Self::Capacity => 10.0,
            Self::Rate => 10_000.0,
        }
    }
}

/// Levels in order of time, at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct LoadCurve {
    levels: Vec<f64>,
    unit: LoadUnit,
}

impl LoadCurve {
    /// Reads a curve.
    ///
    /// # Errors
    /// With what is wrong.
    pub fn parse(text: &str, unit: LoadUnit) -> Result<Self, String> {
        let most = unit.most();
        let mut levels = Vec::new();
        for group in text.split(',') {
            let (level, count) = group.split_once('*').unwrap_or((group, "1"));
            let level = level.parse::<f64>().ok();
            let level = level.filter(|level| (0.0..=most).contains(level));
            let count = count.parse::<usize>().ok();
            let count = count.filter(|count| (1..=MOST_PARTS).contains(count));
            let (Some(level), Some(count)) = (level, count) else {
                return Err(format!(
                    "load: found {group}, expected a level of 0 to {most}, or 0.7*10 for ten parts of it"
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
        Ok(Self { levels, unit })
    }

    /// The levels.
    #[must_use]
    pub fn levels(&self) -> &[f64] {
        &self.levels
    }

    /// The mean rate, in requests a second.
    #[must_use]
    pub fn mean_rate(&self, capacity: f64) -> f64 {
        let count = u32::try_from(self.levels.len()).unwrap_or(u32::MAX);
        let mean = self.levels.iter().sum::<f64>() / f64::from(count);
        match self.unit {
            LoadUnit::Capacity => mean * capacity,
            LoadUnit::Rate => mean,
        }
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

    /// The load of a run of this length, times a factor: a step where the level changes.
    #[must_use]
    pub fn points(&self, duration: Duration, scale: f64) -> Vec<LoadPoint> {
        let part = duration / u32::try_from(self.levels.len()).unwrap_or(u32::MAX);
        let mut before = 0;
        let mut points = Vec::new();
        for (level, count) in self.groups() {
            let level = Some(level * scale);
            let (x, rps) = match self.unit {
                LoadUnit::Capacity => (level, None),
                LoadUnit::Rate => (None, level),
            };
            points.push(LoadPoint {
                at: part * before,
                x,
                rps,
                ramp: false,
            });
            before += count;
        }
        points
    }

    /// Levels, and for how many parts each lasts.
    fn groups(&self) -> Vec<(f64, u32)> {
        let mut groups: Vec<(f64, u32)> = Vec::new();
        for level in &self.levels {
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
        let curve = LoadCurve::parse("0.7*2,3,0.7", LoadUnit::Capacity).unwrap();
        assert_eq!(curve.levels(), [0.7, 0.7, 3.0, 0.7]);
        assert_eq!(curve.text(), "0.7*2,3,0.7");
        let points = curve.points(Duration::from_secs(8), 1.0);
        let points: Vec<_> = points.iter().map(|p| (p.at.as_secs(), p.x)).collect();
        assert_eq!(points, [(0, Some(0.7)), (4, Some(3.0)), (6, Some(0.7))]);
        assert!((curve.mean_rate(400.0) - 510.0).abs() < 1e-9);
    }

    #[test]
    fn a_curve_in_requests_a_second_does_not_know_the_capacity() {
        let curve = LoadCurve::parse("280*3,1200", LoadUnit::Rate).unwrap();
        assert_eq!(curve.text(), "280*3,1200");
        let points = curve.points(Duration::from_secs(8), 0.5);
        let points: Vec<_> = points
            .iter()
            .map(|p| (p.at.as_secs(), p.x, p.rps))
            .collect();
        assert_eq!(points, [(0, None, Some(140.0)), (6, None, Some(600.0))]);
        assert!((curve.mean_rate(1.0) - 510.0).abs() < 1e-9);
    }

    #[test]
    fn what_is_no_curve_is_refused() {
        for wrong in ["", "x", "1,", "-1", "11", "1*0", "1*61", "1*40,2*21", "NaN"] {
            let found = LoadCurve::parse(wrong, LoadUnit::Capacity);
            assert!(found.is_err(), "{wrong}: {found:?}");
        }
        assert!(LoadCurve::parse("10001", LoadUnit::Rate).is_err());
    }
}
