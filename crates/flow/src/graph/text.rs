//! Graphs as the text of drawing tools.

use super::{Graph, Node};

impl Graph {
    /// The drawing as Mermaid text.
    pub fn to_mermaid(&self) -> String {
        let mut text = "flowchart TD\n".to_owned();
        for node in &self.nodes {
            let (open, close) = mermaid_shape(node);
            text.push_str(&format!(
                "  {}{open}\"{}\"{close}\n",
                node.id,
                mermaid_label(&node.label)
            ));
        }
        for edge in &self.edges {
            let arrow = if edge.label.is_empty() {
                "-->".to_owned()
            } else {
                format!("-.->|\"{}\"|", mermaid_label(&edge.label))
            };
            text.push_str(&format!("  {} {arrow} {}\n", edge.from, edge.to));
        }
        text
    }

    /// The drawing as Graphviz text.
    pub fn to_dot(&self) -> String {
        let mut text = "digraph flow {\n".to_owned();
        for node in &self.nodes {
            let shape = dot_shape(node);
            text.push_str(&format!(
                "  {} [label=\"{}\", shape={shape}];\n",
                node.id,
                dot_label(&node.label)
            ));
        }
        for edge in &self.edges {
            let style = if edge.label.is_empty() {
                String::new()
            } else {
                format!(" [label=\"{}\", style=dashed]", dot_label(&edge.label))
            };
            text.push_str(&format!("  {} -> {}{style};\n", edge.from, edge.to));
        }
        text.push_str("}\n");
        text
    }
}

fn mermaid_shape(node: &Node) -> (&'static str, &'static str) {
    match node.kind {
        "source" => ("([", "])"),
        "condition" => ("{", "}"),
        "target" => ("[[", "]]"),
        "dead_letter" => ("[(", ")]"),
        _ => ("[", "]"),
    }
}

fn dot_shape(node: &Node) -> &'static str {
    match node.kind {
        "source" => "oval",
        "condition" => "diamond",
        "target" => "component",
        "dead_letter" => "cylinder",
        _ => "box",
    }
}

/// Quotes, and whatever Mermaid takes for markup, as its entity codes.
fn mermaid_label(label: &str) -> String {
    label
        .chars()
        .map(|c| match c {
            '"' => "#quot;".to_owned(),
            '#' | '&' | '<' | '>' | '`' | '\\' | ';' => format!("#{};", u32::from(c)),
            c if c.is_control() => " ".to_owned(),
            c => c.to_string(),
        })
        .collect()
}

fn dot_label(label: &str) -> String {
    label
        .chars()
        .map(|c| match c {
            '"' | '\\' => format!("\\{c}"),
            c if c.is_control() => " ".to_owned(),
            c => c.to_string(),
        })
        .collect()
}
