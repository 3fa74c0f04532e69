//! A page of headings, tables and charts: HTML that needs nothing else, Markdown, and JSON.

mod html;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::chart::Chart;
use crate::chart::bars::Bars;
use crate::table::Table;

/// A title and what comes below it.
#[derive(Debug, Clone, Serialize)]
pub struct Page {
    title: String,
    blocks: Vec<Block>,
}

/// A piece of a page.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
enum Block {
    Heading(String),
    Subheading(String),
    Paragraph(String),
    Note(String),
    Cards(Vec<Card>),
    Table(Table),
    Charts(Vec<Picture>),
    Folded { summary: String, block: Box<Self> },
}

/// A figure with a filter beside the same figure without one, as the first thing that catches the eye.
#[derive(Debug, Clone, Serialize)]
pub struct Card {
    /// What the figure is.
    pub title: String,
    /// With the filter, with its unit.
    pub with: String,
    /// Without it.
    pub without: String,
    /// What the figure is to be compared with.
    pub note: String,
}

/// A chart of either kind.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub enum Picture {
    /// Values over time.
    Chart(Chart),
    /// Values side by side.
    Bars(Bars),
}

impl From<Chart> for Picture {
    fn from(chart: Chart) -> Self {
        Self::Chart(chart)
    }
}

impl From<Bars> for Picture {
    fn from(bars: Bars) -> Self {
        Self::Bars(bars)
    }
}

impl Page {
    /// A page with nothing below its title yet.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            blocks: Vec::new(),
        }
    }

    /// Adds the heading of a section.
    pub fn heading(&mut self, text: &str) -> &mut Self {
        self.add(Block::Heading(text.to_owned()))
    }

    /// Adds a heading within a section.
    pub fn subheading(&mut self, text: &str) -> &mut Self {
        self.add(Block::Subheading(text.to_owned()))
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: &str) -> &mut Self {
        self.add(Block::Paragraph(text.to_owned()))
    }

    /// Adds a paragraph in small letters.
    pub fn note(&mut self, text: &str) -> &mut Self {
        self.add(Block::Note(text.to_owned()))
    }

    /// Adds cards beside each other; not in Markdown.
    pub fn cards(&mut self, cards: Vec<Card>) -> &mut Self {
        self.add(Block::Cards(cards))
    }

    /// Adds a table; a table without rows is left out.
    pub fn table(&mut self, table: Table) -> &mut Self {
        if table.rows.is_empty() {
            return self;
        }
        self.add(Block::Table(table))
    }

    /// Adds a long table, of which HTML shows `summary` until it is opened; a table without rows is left out.
    pub fn folded_table(&mut self, summary: &str, table: Table) -> &mut Self {
        if table.rows.is_empty() {
            return self;
        }
        self.fold(summary, Block::Table(table))
    }

    /// Adds charts, small ones beside each other; not in Markdown.
    pub fn charts<P: Into<Picture>>(&mut self, charts: impl IntoIterator<Item = P>) -> &mut Self {
        self.add(Block::Charts(charts.into_iter().map(Into::into).collect()))
    }

    /// Adds charts, of which HTML shows `summary` until it is opened; not in Markdown.
    pub fn folded_charts<P: Into<Picture>>(
        &mut self,
        summary: &str,
        charts: impl IntoIterator<Item = P>,
    ) -> &mut Self {
        let charts = charts.into_iter().map(Into::into).collect();
        self.fold(summary, Block::Charts(charts))
    }

    fn fold(&mut self, summary: &str, block: Block) -> &mut Self {
        self.add(Block::Folded {
            summary: summary.to_owned(),
            block: Box::new(block),
        })
    }

    fn add(&mut self, block: Block) -> &mut Self {
        self.blocks.push(block);
        self
    }

    /// The text and the tables as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n", self.title);
        for (index, block) in self.blocks.iter().enumerate() {
            let next = self.blocks.get(index + 1);
            // Markdown has no charts, so a subheading with nothing but charts would be empty.
            let is_needless =
                matches!(block, Block::Subheading(_)) && next.is_none_or(|next| !next.is_text());
            if block.is_text() && !is_needless {
                // Writing to a string does not fail.
                let _ = write!(text, "\n{}", block.markdown());
            }
        }
        text
    }

    /// Writes `NAME.html` and, with what the page shows as data, `NAME.json` beside it. Returns the whole path of the
    /// HTML file.
    ///
    /// # Errors
    /// When the folder or a file cannot be written; the message names it.
    pub fn write(&self, folder: &Path, name: &str) -> io::Result<PathBuf> {
        let named = |path: &Path, error: io::Error| {
            io::Error::new(error.kind(), format!("write {}: {error}", path.display()))
        };
        let page = folder.join(name).with_extension("html");
        let data = page.with_extension("json");
        fs::create_dir_all(folder).map_err(|error| named(folder, error))?;
        fs::write(&data, serde_json::to_vec(self)?).map_err(|error| named(&data, error))?;
        fs::write(&page, self.html()).map_err(|error| named(&page, error))?;
        Ok(fs::canonicalize(&page).unwrap_or(page))
    }
}

impl Block {
    /// Whether Markdown shows it.
    fn is_text(&self) -> bool {
        match self {
            Self::Cards(_) | Self::Charts(_) => false,
            Self::Folded { block, .. } => block.is_text(),
            _ => true,
        }
    }

    fn markdown(&self) -> String {
        match self {
            Self::Heading(text) => format!("## {text}\n"),
            Self::Subheading(text) => format!("### {text}\n"),
            Self::Paragraph(text) | Self::Note(text) => format!("{text}\n"),
            Self::Table(table) => table.markdown(),
            Self::Folded { summary, block } => format!("### {summary}\n\n{}", block.markdown()),
            Self::Cards(_) | Self::Charts(_) => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page() -> Page {
        let mut page = Page::new("T");
        let row = vec!["*a|b".to_owned(), "!<1".to_owned()];
        page.heading("H & co")
            .table(Table::with_names(1, &["name", "n"], vec![row]))
            .subheading("S")
            .charts([Bars::new("B", "u", vec!["g".to_owned()])]);
        page
    }

    #[test]
    fn markdown_has_the_tables() {
        let expected = "# T\n\n## H & co\n\n| name | n |\n|---|---:|\n| **a\\|b** | **<1** |\n";
        assert_eq!(page().markdown(), expected);
    }

    #[test]
    fn html_has_the_charts_and_loads_nothing() {
        let html = page().html();
        assert!(
            html.contains("<figure><svg") && html.contains("H &amp; co"),
            "{html}"
        );
        assert!(
            html.contains("<strong class=\"bad\">&lt;1</strong>"),
            "{html}"
        );
        let addresses: Vec<&str> = html.split("http").skip(1).collect();
        assert!(
            addresses
                .iter()
                .all(|rest| rest.starts_with("://www.w3.org/2000/svg")),
            "{addresses:?}"
        );
        assert!(!html.contains("<script") && !html.contains("<link"));
    }

    #[test]
    fn json_has_what_tables_and_charts_show() {
        let mut page = page();
        let chart = Chart::new("C", "ms", 2.0);
        let points = [(0.0, Some(1.0)), (1.0, None)];
        let line = crate::chart::Line::new("l", crate::color::Color::Teal, points);
        page.charts([Chart {
            lines: vec![line],
            ..chart
        }]);
        let json = serde_json::to_string(&page).unwrap();
        assert!(json.contains("\"rows\":[[\"*a|b\",\"!<1\"]]"), "{json}");
        assert!(json.contains("\"points\":[[0.0,1.0],[1.0,null]]"), "{json}");
    }
}
