//! The findings as a picture: for each its share of the goal, on a scale of doublings, with a line
//! where goals are reached.

use std::fmt::Write;

use crate::finding::Finding;

const WIDTH: f64 = 960.0;
const LABELS: f64 = 470.0;
const ROW: f64 = 26.0;
const TOP: f64 = 48.0;
/// Doublings shown on either side of the line.
const DOUBLINGS: f64 = 3.0;

/// An SVG.
pub fn draw(findings: &[Finding]) -> String {
    let height = TOP + ROW * findings.len() as f64 + 12.0;
    let mut svg = format!(
        concat!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {} {}" "#,
            r#"font-family="sans-serif" font-size="12">"#,
            "\n",
            r##"<rect width="100%" height="100%" fill="#ffffff"/>"##,
            "\n",
            r##"<text x="12" y="20" font-size="14" font-weight="bold" fill="#222222">"##,
            "Figures beside their goals</text>\n"
        ),
        WIDTH, height
    );
    for doubling in -3_i32..=3 {
        let x = position(2_f64.powi(doubling));
        let share = 2_f64.powi(doubling);
        let (colour, text) = if doubling == 0 {
            ("#222222", "goal".to_owned())
        } else {
            ("#dddddd", format!("{share}"))
        };
        let end = height - 8.0;
        let _ = writeln!(
            svg,
            r#"<line x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{end}" stroke="{colour}"/>"#
        );
        let above = TOP - 6.0;
        let _ = writeln!(
            svg,
            r##"<text x="{x:.1}" y="{above}" text-anchor="middle" fill="#555555">{text}</text>"##
        );
    }
    for (index, finding) in findings.iter().enumerate() {
        let y = TOP + ROW * index as f64 + 5.0;
        let goal = position(1.0);
        let end = position(finding.share());
        let x = goal.min(end);
        let width = (end - goal).abs().max(2.0);
        let colour = if finding.reached() {
            "#2a9d6f"
        } else {
            "#c8553d"
        };
        let _ = writeln!(
            svg,
            r#"<rect x="{x:.1}" y="{y}" width="{width:.1}" height="14" fill="{colour}"/>"#
        );
        let text = escape(&label(finding));
        let base = y + 11.0;
        let _ = writeln!(
            svg,
            r##"<text x="12" y="{base}" fill="#222222">{text}</text>"##
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn position(share: f64) -> f64 {
    let doublings = if share.is_finite() && share > 0.0 {
        share.log2()
    } else {
        -DOUBLINGS
    };
    let middle = LABELS + (WIDTH - LABELS) / 2.0;
    let half = (WIDTH - LABELS) / 2.0 - 20.0;
    middle + doublings.clamp(-DOUBLINGS, DOUBLINGS) / DOUBLINGS * half
}

/// Cut to what fits beside the bars.
fn label(finding: &Finding) -> String {
    let figure = finding.figure_text();
    let room = 66_usize.saturating_sub(figure.chars().count());
    let what = if finding.what.chars().count() > room {
        finding
            .what
            .chars()
            .take(room.saturating_sub(3))
            .chain("...".chars())
            .collect()
    } else {
        finding.what.replace('`', "")
    };
    format!("{} {what}: {figure}", finding.measure)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Goal;

    #[test]
    fn each_finding_has_a_bar_on_its_side_of_the_line() {
        let finding =
            |figure| Finding::new("P1", "a < b", Goal::AtLeast(1.0), figure, String::new());
        let svg = draw(&[finding(2.0), finding(0.5), finding(f64::NAN)]);
        assert_eq!(svg.matches("#2a9d6f").count(), 1);
        assert_eq!(svg.matches("#c8553d").count(), 2);
        assert!(svg.contains("a &lt; b: 0.50") && svg.ends_with("</svg>\n"));
        assert!(position(2.0) > position(1.0) && position(0.5) < position(1.0));
    }
}
