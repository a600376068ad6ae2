//! Pages of the documentation: their blocks, and a reader who types those marked `sh` into fresh
//! terminals. What the marks mean is in `docs/ADDING.md`.

mod output;
mod reader;
mod terminal;

pub use reader::Reader;

/// A fenced block of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Line of the page on which the text of the block begins, counted from 1.
    pub line: usize,
    /// Title of the section of second level that the block stands in.
    pub section: String,
    /// First word of the mark, such as `sh`.
    pub language: String,
    /// Words of the mark after the first one.
    pub words: Vec<String>,
    pub text: String,
    /// The text block that follows with nothing but blank lines between: what this block prints.
    pub output: Option<String>,
}

impl Block {
    pub fn says(&self, word: &str) -> bool {
        self.words.iter().any(|said| said == word)
    }
}

/// Returns the fenced blocks of a page in their order.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut section = String::new();
    // Whether only blank lines followed the block before.
    let mut adjacent = false;
    let mut lines = page.lines().enumerate();
    while let Some((index, line)) = lines.next() {
        let Some(mark) = line.trim_start().strip_prefix("```") else {
            if let Some(title) = line.strip_prefix("## ") {
                title.trim().clone_into(&mut section);
            }
            adjacent &= line.trim().is_empty();
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        let text: String = lines
            .by_ref()
            .map(|(_, line)| line)
            .take_while(|line| line.trim() != "```")
            .map(|line| format!("{}\n", line.get(indent..).unwrap_or_default()))
            .collect();
        let mut words = mark.split_whitespace().map(str::to_owned);
        let language = words.next().unwrap_or_default();
        match blocks.last_mut() {
            Some(before) if adjacent && language == "text" && before.language == "sh" => {
                before.output = Some(text)
            }
            _ => {
                let section = section.clone();
                let words = words.collect();
                blocks.push(Block {
                    line: index + 2,
                    section,
                    language,
                    words,
                    text,
                    output: None,
                });
            }
        }
        adjacent = true;
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_blocks_with_their_sections_and_what_they_print() {
        let page = "# Page\n\n```text\nfree\n```\n\n## One\n\n- item\n\n  ```sh terminal=2\n  \
                    kanat up\n  ```\n\n  ```text\n  up\n  ```\n\nmore\n\n```text\nfree too\n```\n";
        let found = blocks(page);
        let told: Vec<_> = found
            .iter()
            .map(|block| (block.line, block.section.as_str(), block.text.as_str()))
            .collect();
        assert_eq!(
            told,
            [
                (4, "", "free\n"),
                (12, "One", "kanat up\n"),
                (22, "One", "free too\n")
            ]
        );
        assert_eq!(found[1].language.as_str(), "sh");
        assert!(found[1].says("terminal=2"));
        assert_eq!(found[1].output.as_deref(), Some("up\n"));
    }
}
