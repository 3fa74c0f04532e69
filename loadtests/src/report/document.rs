//! What is to be shown, before it is HTML or Markdown.

use std::fmt::Write as _;

use tidegate_report::chart::Chart;
use tidegate_report::chart::bars::Bars;
use tidegate_report::page::{Page, escape};

/// A title and what stands below it.
#[derive(Debug, Clone)]
pub struct Document {
    title: String,
    blocks: Vec<Block>,
}

/// A piece of a document.
#[derive(Debug, Clone)]
pub enum Block {
    /// A heading of a section.
    Heading(String),
    /// A heading within a section.
    Subheading(String),
    /// A paragraph.
    Paragraph(String),
    /// A paragraph in small letters.
    Note(String),
    /// A table; cells that begin with `*` are stressed, with `!` as something bad.
    Table {
        /// Heads of the columns.
        head: Vec<String>,
        /// Its rows.
        rows: Vec<Vec<String>>,
        /// So many columns are words, and stand to the left.
        words: usize,
        /// A long table is folded on a page, and this is what is seen of it.
        summary: Option<String>,
    },
    /// Bars, small ones beside each other; not in Markdown.
    Bars(Vec<Bars>),
    /// Charts over time, small ones beside each other; not in Markdown.
    Charts(Vec<Chart>),
}

impl Block {
    const fn is_picture(&self) -> bool {
        matches!(self, Self::Bars(_) | Self::Charts(_))
    }
}

impl Document {
    /// A document with nothing below its title yet.
    #[must_use]
    pub fn new(title: &str) -> Self {
        Self {
            title: title.to_owned(),
            blocks: Vec::new(),
        }
    }

    /// Adds a heading of a section.
    pub fn heading(&mut self, text: &str) {
        self.blocks.push(Block::Heading(text.to_owned()));
    }

    /// Adds a heading within a section.
    pub fn subheading(&mut self, text: &str) {
        self.blocks.push(Block::Subheading(text.to_owned()));
    }

    /// Adds a paragraph.
    pub fn paragraph(&mut self, text: &str) {
        self.blocks.push(Block::Paragraph(text.to_owned()));
    }

    /// Adds a paragraph in small letters.
    pub fn note(&mut self, text: &str) {
        self.blocks.push(Block::Note(text.to_owned()));
    }

    /// Adds a table whose first `words` columns are words; without rows there is none.
    pub fn table(&mut self, head: &[&str], rows: Vec<Vec<String>>, words: usize) {
        self.push_table(head, rows, words, None);
    }

    /// Adds a long table, of which a page shows `summary` until it is asked for.
    pub fn folded(&mut self, summary: &str, head: &[&str], rows: Vec<Vec<String>>, words: usize) {
        self.push_table(head, rows, words, Some(summary.to_owned()));
    }

    fn push_table(
        &mut self,
        head: &[&str],
        rows: Vec<Vec<String>>,
        words: usize,
        summary: Option<String>,
    ) {
        if !rows.is_empty() {
            let head = head.iter().map(|text| (*text).to_owned()).collect();
            self.blocks.push(Block::Table {
                head,
                rows,
                words,
                summary,
            });
        }
    }

    /// Adds bars.
    pub fn bars(&mut self, bars: Vec<Bars>) {
        self.blocks.push(Block::Bars(bars));
    }

    /// Adds charts over time.
    pub fn charts(&mut self, charts: Vec<Chart>) {
        self.blocks.push(Block::Charts(charts));
    }

    /// One HTML page that needs nothing else.
    #[must_use]
    pub fn html(&self) -> String {
        let mut page = Page::new(&self.title);
        page.raw(STYLE);
        for block in &self.blocks {
            match block {
                Block::Heading(text) => page.heading(text),
                Block::Subheading(text) => page.raw(&format!("<h3>{}</h3>", escape(text))),
                Block::Paragraph(text) => page.paragraph(text),
                Block::Note(text) => page.note(text),
                Block::Table {
                    head,
                    rows,
                    words,
                    summary,
                } => {
                    let head: Vec<&str> = head.iter().map(String::as_str).collect();
                    page.raw(&opening(summary.as_deref(), *words));
                    if *words >= head.len() {
                        page.words(&head, rows);
                    } else {
                        page.table(&head, rows);
                    }
                    page.raw(if summary.is_some() {
                        "</div></details>"
                    } else {
                        "</div>"
                    })
                }
                Block::Bars(bars) => {
                    page.raw(&figures(bars.iter().map(|bars| (bars.width, bars.svg()))))
                }
                Block::Charts(charts) => page.raw(&figures(
                    charts.iter().map(|chart| (chart.width, chart.svg())),
                )),
            };
        }
        page.html()
    }

    /// The text and the tables as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let mut text = format!("# {}\n", self.title);
        for (index, block) in self.blocks.iter().enumerate() {
            let next = self.blocks.get(index + 1);
            // Writing to a string does not fail.
            let _ = match block {
                Block::Heading(heading) => write!(text, "\n## {heading}\n"),
                // Above nothing but pictures there is nothing to head.
                Block::Subheading(_) if next.is_none_or(Block::is_picture) => Ok(()),
                Block::Subheading(heading) => write!(text, "\n### {heading}\n"),
                Block::Paragraph(paragraph) | Block::Note(paragraph) => {
                    write!(text, "\n{paragraph}\n")
                }
                Block::Table {
                    head,
                    rows,
                    words,
                    summary,
                } => {
                    let heading = summary.as_ref().map(|summary| format!("### {summary}\n\n"));
                    let heading = heading.unwrap_or_default();
                    write!(text, "\n{heading}{}", table(head, rows, *words))
                }
                Block::Bars(_) | Block::Charts(_) => Ok(()),
            };
        }
        text
    }
}

/// What tables need beyond the style of all pages: words to the left, long ones in several lines so that figures have
/// room, and the name of a row that stays while its figures are scrolled.
const STYLE: &str = "<style>.w2 td:nth-child(2),.w2 th:nth-child(2){text-align:left}\
    .w1 th,.w2 th{white-space:normal}\
    .w1 td:first-child,.w2 td:first-child{white-space:normal;min-width:9em;max-width:19em;\
    position:sticky;left:0;background:var(--card)}\
    @media(max-width:600px){.w1 td:first-child,.w2 td:first-child{min-width:9.5em;max-width:10em;overflow-wrap:anywhere}}\
    .words td:last-child{white-space:normal;min-width:20em}\
    details{margin:18px 0}summary{cursor:pointer;font-weight:600;font-size:15.5px;margin-bottom:8px}</style>";

/// What stands before a table.
fn opening(summary: Option<&str>, words: usize) -> String {
    let class = format!(" class=\"w{}\"", words.min(2));
    summary.map_or_else(
        || format!("<div{class}>"),
        |summary| {
            format!(
                "<details><summary>{}</summary><div{class}>",
                escape(summary)
            )
        },
    )
}

/// Pictures narrower than this stand beside each other.
const SMALL: u32 = 500;

fn figures(pictures: impl Iterator<Item = (u32, String)>) -> String {
    let pictures: Vec<(u32, String)> = pictures.collect();
    let is_small = pictures.iter().all(|(width, _)| *width < SMALL);
    let figures: String = pictures
        .iter()
        .map(|(_, svg)| format!("<figure>{svg}</figure>"))
        .collect();
    if is_small {
        format!("<div class=\"side-by-side\">{figures}</div>")
    } else {
        figures
    }
}

fn table(head: &[String], rows: &[Vec<String>], words: usize) -> String {
    let cell = |text: &String| match (text.strip_prefix('*'), text.strip_prefix('!')) {
        (Some(stressed), _) | (_, Some(stressed)) => {
            format!("**{}**", stressed.replace('|', "\\|"))
        }
        _ => text.replace('|', "\\|"),
    };
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    let rule = (0..head.len()).map(|column| if column < words { "---" } else { "---:" });
    let rule = format!("|{}|\n", rule.collect::<Vec<_>>().join("|"));
    let rows: String = rows
        .iter()
        .map(|row| line(row.iter().map(cell).collect()))
        .collect();
    line(head.to_vec()) + &rule + &rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document() -> Document {
        let mut document = Document::new("T");
        document.heading("H & co");
        document.table(
            &["name", "n"],
            vec![vec!["*a|b".to_owned(), "!1".to_owned()]],
            1,
        );
        document.subheading("S");
        document.bars(vec![Bars::new("B", "u", vec!["g".to_owned()])]);
        document
    }

    #[test]
    fn markdown_has_the_tables() {
        let expected = "# T\n\n## H & co\n\n| name | n |\n|---|---:|\n| **a\\|b** | **1** |\n";
        assert_eq!(document().markdown(), expected);
    }

    #[test]
    fn html_has_the_pictures_and_loads_nothing() {
        let html = document().html();
        assert!(
            html.contains("<figure><svg") && html.contains("H &amp; co"),
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
}
