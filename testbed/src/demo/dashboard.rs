//! The display while the story runs: a dashboard drawn in place, or a line a second.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write};
use std::time::Duration;

use super::live::View;

/// Both sides at one moment.
#[derive(Debug, Clone, Default)]
pub struct Moment {
    /// Time passed.
    pub passed: Duration,
    /// Length of the story.
    pub length: Duration,
    /// One line about the phase.
    pub phase: String,
    /// Requests offered a second to each side.
    pub offered: f64,
    /// Capacity of each upstream.
    pub capacity: f64,
    /// The side with the filter.
    pub with: Half,
    /// The side without.
    pub without: Half,
}

/// One side at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Half {
    /// The last second.
    pub view: View,
    /// Requests in the upstream, as the upstream counts them (in service and waiting).
    pub in_upstream: u64,
    /// The filter's limit; `None` on the side without.
    pub limit: Option<u64>,
    /// The filter's count of requests in flight.
    pub in_flight: Option<u64>,
    /// The filter's breaker: 0 closed, 1 half-open, 2 open.
    pub breaker: Option<u64>,
}

/// Shows moments on standard output.
#[derive(Debug)]
pub struct Dashboard {
    is_terminal: bool,
    drawn_lines: usize,
    last_line: Option<u64>,
    goodput: [VecDeque<f64>; 2],
}

/// Width of the little charts, in characters.
const SPARKS: usize = 40;
const BAR: f64 = 24.0;

const TEAL: &str = "\x1b[36m";
const RED: &str = "\x1b[31m";
const YELLOW: &str = "\x1b[33m";
const DIM: &str = "\x1b[2m";
const BOLD: &str = "\x1b[1m";
const OFF: &str = "\x1b[0m";

impl Dashboard {
    /// A dashboard on standard output.
    #[must_use]
    pub fn new() -> Self {
        let is_terminal = std::io::stdout().is_terminal();
        if is_terminal {
            print!("\x1b[?25l");
        }
        Self {
            is_terminal,
            drawn_lines: 0,
            last_line: None,
            goodput: [VecDeque::new(), VecDeque::new()],
        }
    }

    /// Shows a moment: in place on a terminal, otherwise once a second as a line.
    pub fn show(&mut self, moment: &Moment) {
        for (history, half) in self.goodput.iter_mut().zip([moment.with, moment.without]) {
            history
                .push_back(tidegate_sim::number::float(half.view.good) / moment.capacity.max(1.0));
            if history.len() > SPARKS {
                history.pop_front();
            }
        }
        if self.is_terminal {
            let text = self.draw(moment);
            let up = if self.drawn_lines > 0 {
                format!("\x1b[{}A", self.drawn_lines)
            } else {
                String::new()
            };
            print!("{up}{text}");
            self.drawn_lines = text.matches('\n').count();
        } else if self.last_line != Some(moment.passed.as_secs()) {
            self.last_line = Some(moment.passed.as_secs());
            println!("{}", line(moment));
        }
        // If the terminal is gone, progress is not needed.
        let _ = std::io::stdout().flush();
    }

    fn draw(&self, moment: &Moment) -> String {
        let share = (moment.passed.as_secs_f64() / moment.length.as_secs_f64()).min(1.0);
        let cell = |index: u32| {
            if f64::from(index) < share * BAR {
                '█'
            } else {
                '░'
            }
        };
        let bar: String = (0..24).map(cell).collect();
        let left = moment.length.saturating_sub(moment.passed).as_secs();
        let mut text = String::new();
        let clear = "\x1b[K\n";
        // Writing to a string does not fail.
        let _ = write!(text, "{BOLD}{}{OFF}{clear}", moment.phase);
        let _ = write!(
            text,
            "{bar} {left:>3} s left   {DIM}offered {:.0}/s, capacity {:.0}/s{OFF}{clear}{clear}",
            moment.offered, moment.capacity
        );
        let _ = write!(
            text,
            "{:<16}{TEAL}{:>16}{OFF}{RED}{:>16}{OFF}{clear}",
            "", "with Tidegate", "without"
        );
        for (name, value) in ROWS {
            let (with, without) = (value(&moment.with), value(&moment.without));
            let _ = write!(text, "{name:<16}{with:>16}{without:>16}{clear}");
        }
        let state = breaker(moment.with.breaker);
        let color = if moment.with.breaker.unwrap_or(0) == 0 {
            ""
        } else {
            YELLOW
        };
        let _ = write!(
            text,
            "{:<16}{color}{state:>16}{OFF}{:>16}{clear}{clear}",
            "breaker", "-"
        );
        for (history, (name, color)) in self.goodput.iter().zip([("with", TEAL), ("without", RED)])
        {
            let _ = write!(
                text,
                "{DIM}goodput {name:<8}{OFF}{color}{}{OFF}{clear}",
                sparks(history)
            );
        }
        text
    }
}

impl Default for Dashboard {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Dashboard {
    fn drop(&mut self) {
        if self.is_terminal {
            print!("\x1b[?25h");
            let _ = std::io::stdout().flush();
        }
    }
}

type DashboardRow = (&'static str, fn(&Half) -> String);

const ROWS: [DashboardRow; 7] = [
    ("goodput /s", |half| half.view.good.to_string()),
    ("p99 ms", |half| {
        half.view
            .p99_ms
            .map_or_else(|| "-".to_owned(), |p99| format!("{p99:.0}"))
    }),
    ("shed /s", |half| half.view.shed.to_string()),
    ("errors, late /s", |half| half.view.failed.to_string()),
    ("in the upstream", |half| half.in_upstream.to_string()),
    ("in flight", |half| known(half.in_flight)),
    ("limit", |half| known(half.limit)),
];

fn known(value: Option<u64>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

const fn breaker(state: Option<u64>) -> &'static str {
    match state {
        Some(0) => "closed",
        Some(1) => "half-open",
        Some(_) => "open",
        None => "-",
    }
}

/// The moment in one line, for logs.
fn line(moment: &Moment) -> String {
    let side = |half: &Half| {
        let p99 = half
            .view
            .p99_ms
            .map_or_else(|| "-".to_owned(), |p99| format!("{p99:.0}"));
        format!(
            "goodput {:>3}/s p99 {p99:>4} ms shed {:>3}/s errors {:>3}/s",
            half.view.good, half.view.shed, half.view.failed
        )
    };
    format!(
        "{:>3} s  with: {} limit {:>3} {:<9} | without: {}  [{}]",
        moment.passed.as_secs(),
        side(&moment.with),
        known(moment.with.limit),
        breaker(moment.with.breaker),
        side(&moment.without),
        moment.phase
    )
}

/// A little chart; 1 is the capacity.
fn sparks(history: &VecDeque<f64>) -> String {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let level = |share: &f64| {
        let index = tidegate_sim::number::floor((share * 7.0).round()).min(7);
        LEVELS.get(index).copied().unwrap_or(' ')
    };
    history.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sparks_reach_from_nothing_to_capacity() {
        assert_eq!(sparks(&VecDeque::from([0.0, 0.5, 1.0, 9.0])), "▁▅██");
    }
}
