//! One table for a terminal, for Markdown and for a page.
//!
//! A cell that begins with `*` is stressed, one that begins with `!` is something bad. A terminal shows such a cell
//! without its mark.

use serde::Serialize;

/// A head, and rows with as many cells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Table {
    /// Headings above several columns, each with the number of columns below it; none in most tables.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) groups: Vec<(String, u32)>,
    /// Names of the columns.
    pub head: Vec<String>,
    /// One row after the other.
    pub rows: Vec<Vec<String>>,
    /// Number of leading columns with words, aligned to the left; the others are figures.
    #[serde(skip)]
    pub(crate) words: usize,
    /// Whether a page breaks long names into several lines.
    #[serde(skip)]
    pub(crate) is_wrapped: bool,
}

/// Space between the columns of a terminal.
const GAP: &str = "  ";

impl Table {
    /// Figures, with a name in front of each row.
    #[must_use]
    pub fn new(head: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self {
            groups: Vec::new(),
            head: head.iter().map(|name| (*name).to_owned()).collect(),
            rows,
            words: 1,
            is_wrapped: false,
        }
    }

    /// Words in all columns.
    #[must_use]
    pub fn of_words(head: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self {
            words: head.len(),
            ..Self::new(head, rows)
        }
    }

    /// Figures behind `words` columns of names, which a page breaks into several lines where they are long.
    #[must_use]
    pub fn with_names(words: usize, head: &[&str], rows: Vec<Vec<String>>) -> Self {
        Self {
            words,
            is_wrapped: true,
            ..Self::new(head, rows)
        }
    }

    /// The same table with headings above several columns, each with the number of columns below it.
    #[must_use]
    pub fn grouped(self, groups: &[(&str, u32)]) -> Self {
        let groups = groups.iter();
        Self {
            groups: groups
                .map(|(name, columns)| ((*name).to_owned(), *columns))
                .collect(),
            ..self
        }
    }

    /// Marks a row as stressed.
    pub fn stress_row(&mut self, row: usize) {
        for cell in self.rows.get_mut(row).into_iter().flatten() {
            cell.insert(0, '*');
        }
    }

    /// Marks a column as stressed, except for its head; nothing without a column of that name.
    pub fn stress_column(&mut self, name: &str) {
        if let Some(column) = self.head.iter().position(|head| head == name) {
            for cell in self.rows.iter_mut().filter_map(|row| row.get_mut(column)) {
                cell.insert(0, '*');
            }
        }
    }

    /// The table for a terminal; ends with a line break.
    #[must_use]
    pub fn text(&self) -> String {
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            let all = self.head.get(column).into_iter().chain(cells);
            all.map(|cell| TableCell::of(cell).text().chars().count())
                .max()
        };
        let columns = 0..self.head.len();
        let widths: Vec<usize> = columns.map(|column| width(column).unwrap_or(0)).collect();
        let line = |cells: &[String]| -> String {
            let cells = cells.iter().zip(&widths).enumerate();
            let cells = cells.map(|(column, (cell, width))| {
                let cell = TableCell::of(cell).text();
                if column < self.words {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            });
            let line: Vec<String> = cells.collect();
            line.join(GAP).trim_end().to_owned() + "\n"
        };
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        self.group_line(&widths) + &line(&self.head) + &line(&rule) + &rows
    }

    /// The headings above several columns, each above their middle; nothing where there are none.
    fn group_line(&self, widths: &[usize]) -> String {
        if self.groups.is_empty() {
            return String::new();
        }
        let mut widths = widths.iter();
        let name = |(name, columns): &(String, u32)| {
            let columns = usize::try_from(*columns).unwrap_or(1);
            let gaps = GAP.len() * columns.saturating_sub(1);
            let width = widths.by_ref().take(columns).sum::<usize>() + gaps;
            format!("{name:^width$}")
        };
        let names: Vec<String> = self.groups.iter().map(name).collect();
        names.join(GAP).trim_end().to_owned() + "\n"
    }

    /// The table in Markdown; ends with a line break.
    #[must_use]
    pub fn markdown(&self) -> String {
        let cell = |text: &String| {
            let shown = TableCell::of(text).text().replace('|', "\\|");
            match TableCell::of(text) {
                TableCell::Plain(_) => shown,
                TableCell::Stressed(_) | TableCell::Bad(_) => format!("**{shown}**"),
            }
        };
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let columns = 0..self.head.len();
        let rule = columns.map(|column| if column < self.words { "---" } else { "---:" });
        let rule = format!("|{}|\n", rule.collect::<Vec<_>>().join("|"));
        let rows = self.rows.iter();
        let rows: String = rows
            .map(|row| line(row.iter().map(cell).collect()))
            .collect();
        line(self.head.clone()) + &rule + &rows
    }
}

/// A cell's text and its emphasis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TableCell<'a> {
    Plain(&'a str),
    Stressed(&'a str),
    Bad(&'a str),
}

impl<'a> TableCell<'a> {
    pub(crate) fn of(cell: &'a str) -> Self {
        if let Some(stressed) = cell.strip_prefix('*') {
            Self::Stressed(stressed)
        } else if let Some(bad) = cell.strip_prefix('!') {
            Self::Bad(bad)
        } else {
            Self::Plain(cell)
        }
    }

    const fn text(self) -> &'a str {
        match self {
            Self::Plain(text) | Self::Stressed(text) | Self::Bad(text) => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Vec<String> {
        cells.iter().map(|cell| (*cell).to_owned()).collect()
    }

    #[test]
    fn headings_stand_above_the_middle_of_their_columns() {
        let table = Table::new(&["name", "with", "less"], vec![row(&["a", "1", "2"])]);
        let text = table.grouped(&[("", 1), ("good", 2)]).text();
        assert_eq!(text.lines().next(), Some("         good"));
        assert_eq!(text.lines().count(), 4);
    }

    #[test]
    fn words_stand_to_the_left() {
        let table = Table::of_words(&["name", "what"], vec![row(&["a", "b"])]);
        assert_eq!(table.text(), "name  what\n----  ----\na     b\n");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let table = Table::new(&["name", "n"], vec![row(&["a", "100"])]);
        assert_eq!(table.text(), "name    n\n----  ---\na     100\n");
    }

    #[test]
    fn marks_of_cells_are_shown_in_markdown_and_not_on_a_terminal() {
        let mut table = Table::with_names(1, &["name", "n"], vec![row(&["a|b", "!1"])]);
        assert_eq!(
            table.markdown(),
            "| name | n |\n|---|---:|\n| a\\|b | **1** |\n"
        );
        assert_eq!(table.text(), "name  n\n----  -\na|b   1\n");
        table.stress_column("name");
        assert_eq!(table.rows[0][0], "*a|b");
    }
}
