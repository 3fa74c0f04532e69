//! Plain tables for a terminal.

/// The same with common headings above columns, each with the number of columns below it.
#[must_use]
pub fn grouped(groups: &[(&str, u32)], head: &[&str], rows: &[Vec<String>]) -> String {
    let table = text(head, rows);
    let rule = table.lines().nth(1).unwrap_or_default();
    let mut widths = rule.split("  ").map(|dashes| dashes.chars().count());
    let mut line = String::new();
    for (name, columns) in groups {
        let columns = usize::try_from(*columns).unwrap_or(1);
        let width: usize =
            widths.by_ref().take(columns).sum::<usize>() + 2 * columns.saturating_sub(1);
        line += &format!("{name:^width$}  ");
    }
    format!("{}\n{table}", line.trim_end())
}

/// Lays out rows under a head; the first column to the left, the others to the right.
#[must_use]
pub fn text(head: &[&str], rows: &[Vec<String>]) -> String {
    layout(head, rows, 1)
}

/// Lays out rows of words under a head: every column to the left.
#[must_use]
pub fn words(head: &[&str], rows: &[Vec<String>]) -> String {
    layout(head, rows, head.len())
}

/// Lays out rows under a head; the first `left` columns to the left, the others to the right.
fn layout(head: &[&str], rows: &[Vec<String>], left: usize) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| -> String {
        let cells: Vec<String> = cells
            .zip(&widths)
            .enumerate()
            .map(|(index, (cell, width))| {
                if index < left {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                }
            })
            .collect();
        cells.join("  ").trim_end().to_owned()
    };
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut lines = vec![
        line(&mut head.iter().copied()),
        line(&mut rule.iter().map(String::as_str)),
    ];
    lines.extend(
        rows.iter()
            .map(|row| line(&mut row.iter().map(String::as_str))),
    );
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_stand_above_the_middle_of_their_columns() {
        let row = vec!["a".to_owned(), "1".to_owned(), "2".to_owned()];
        let table = grouped(&[("", 1), ("good", 2)], &["name", "with", "less"], &[row]);
        assert_eq!(table.lines().next(), Some("         good"));
    }

    #[test]
    fn words_stand_to_the_left() {
        let row = vec!["a".to_owned(), "b".to_owned()];
        let table = words(&["name", "what"], &[row]);
        assert_eq!(table, "name  what\n----  ----\na     b\n");
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let table = text(&["name", "n"], &[vec!["a".to_owned(), "100".to_owned()]]);
        assert_eq!(table, "name    n\n----  ---\na     100\n");
    }
}
