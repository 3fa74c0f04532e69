//! The output of a process, which can be read while the process writes.
//!
//! The output is always a file, so a process never waits for its output to be read, and no thread has to read it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Stdio;

/// Maximum of lines that errors show.
const TAIL_LINES: usize = 25;

/// Maximum of bytes that errors show.
const TAIL_BYTES: u64 = 4_000;

/// Where both output streams of a process go.
#[derive(Debug, Clone, Copy)]
pub enum Log<'a> {
    /// Appended to `NAME.log` in this folder, where NAME is that of the process.
    In(&'a Path),
    /// To an unnamed file, which is deleted with the [`Process`](crate::Process).
    Unnamed,
}

/// The file that a process writes.
#[derive(Debug)]
pub(crate) struct OutputFile {
    file: File,
    /// Bytes that were in the file before.
    begin: u64,
}

impl OutputFile {
    pub(crate) fn open(log: Log<'_>, name: &str) -> io::Result<Self> {
        let file = match log {
            Log::In(folder) => File::options()
                .create(true)
                .append(true)
                .read(true)
                .open(folder.join(format!("{name}.log")))?,
            Log::Unnamed => tempfile::tempfile()?,
        };
        let begin = file.metadata()?.len();
        Ok(Self { file, begin })
    }

    pub(crate) fn stdio(&self) -> io::Result<Stdio> {
        Ok(self.file.try_clone()?.into())
    }

    /// All that the process has written.
    pub(crate) fn text(&self) -> String {
        self.from(self.begin)
    }

    /// The last lines of the output.
    pub(crate) fn tail(&self) -> String {
        let end = self.file.metadata().map_or(0, |metadata| metadata.len());
        let text = self.from(self.begin.max(end.saturating_sub(TAIL_BYTES)));
        let lines: Vec<&str> = text.lines().collect();
        let first = lines.len().saturating_sub(TAIL_LINES);
        lines.get(first..).unwrap_or_default().join("\n")
    }

    /// The complete lines after the first `read` bytes; adds their length to `read`.
    pub(crate) fn lines_after(&self, read: &mut usize) -> String {
        let mut text = self.bytes(self.begin.saturating_add(u64::try_from(*read).unwrap_or(0)));
        let whole = text.iter().rposition(|byte| *byte == b'\n');
        text.truncate(whole.map_or(0, |end| end + 1));
        *read += text.len();
        String::from_utf8_lossy(&text).into_owned()
    }

    fn from(&self, offset: u64) -> String {
        String::from_utf8_lossy(&self.bytes(offset)).into_owned()
    }

    /// The content of the file from `offset` on. Unreadable parts are skipped: the text is for people.
    fn bytes(&self, mut offset: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut block = [0; 8_192];
        while let Ok(length @ 1..) = self.file.read_at(&mut block, offset) {
            bytes.extend_from_slice(block.get(..length).unwrap_or_default());
            offset = offset.saturating_add(u64::try_from(length).unwrap_or(0));
        }
        bytes
    }
}
