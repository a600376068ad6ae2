//! Expressions and templates at random, always the same ones: what flows write, and what is easily
//! read otherwise than it was.

/// Generator of the first expressions of the table.
pub(super) struct Generator(u64);

const PATHS: &[&str] = &[
    "source.id",
    "source.total",
    "source.price",
    "source.big",
    "source.zero",
    "source.name",
    "source.empty",
    "source.nothing",
    "source.missing",
    "source.country",
    "source.amount",
    "source.yes",
    "source.no",
    "source.when",
    "source.list",
    "source.none",
    "source.mixed",
    "source.words",
    "source.lines",
    "source.lines[*].qty",
    "source.lines[*].sku",
    "source.lines[1].price",
    "source.lines[9].price",
    "source.object",
    "source.object.a.c",
    "source['odd name']",
    "source[\"a-1\"]",
    "source.a-1",
    "source.if",
    "source.in",
    "source.not",
    "source.index",
    "source.and.or",
    "source.coalesce[0]",
    "source.größe",
    "source",
    "trigger.headers.X-Shop",
    "trigger.query.q",
    "trigger.body.id",
    "trigger.method",
    "steps.contact.output.id",
    "steps.contact.status",
    "target.response.body.ok",
    "state.cursor",
    "item.x",
    "item",
];

const LITERALS: &[&str] = &[
    "1",
    "0",
    "-1",
    "-1.10",
    "1.0",
    "1e3",
    "-0",
    "149.5",
    "9007199254740993",
    "1e-7",
    "true",
    "false",
    "null",
    "''",
    "'a'",
    "\"de\"",
    "'1'",
    "'a - b'",
    "'a\\'b'",
    "\"\\u00e9\\n\"",
    "'{{'",
    "'a, b) | c'",
    "now()",
    "now ( )",
];

/// Arguments of `default`, `concat` and of the default of `lookup`.
const OPERANDS: &[&str] = &[
    "a",
    "EUR",
    "N/A",
    "a - b",
    "a-b",
    "1 + 1",
    "5-3",
    "[]",
    "[1, 2]",
    "[a",
    "item",
    "index",
    "outer",
    "outer.item",
    "index.x",
    "source",
    "env",
    "env.X",
    "response",
    "response.status",
    "if",
    "coalesce",
    "not a",
    "a and b",
    "in",
    "-",
    "-source.id",
    "+1",
    "1,000",
    "1e3",
    "-1.10",
    "01",
    "1.",
    "null",
    "true",
    "false",
    "' '",
    "\"x\"",
    "''",
    "source.id",
    "source.a-1",
    "source.missing",
    "source['odd name']",
    "source.lines[0].sku",
    "source.lines[*].qty",
    "item.x",
    "trigger.query.q",
    "trigger.body.id",
    "steps.contact.status",
    "unknown.id",
    "a.b",
    "a b  c",
    "a*b",
    "a/b",
    "100%",
    "x == y",
    "a: b",
    "é",
    "\\n",
    "#",
    "*",
];

/// Arguments that are texts wherever they stand.
const TEXTS: &[&str] = &[
    "','",
    "a",
    "-",
    "' '",
    ";",
    "source.sep",
    "item",
    "/",
    "1",
    "e",
    "'-'",
    "a-b",
    "''",
    "in",
];

const FORMATS: &[&str] = &[
    "YYYY-MM-DD",
    "HH:mm",
    "'DD.MM.YYYY'",
    "YYYY [at, (x)] HH",
    "X",
    "D/M/YY",
    "YYYY-MM-DD, Europe/Berlin",
    "HH:mm Z, +02:00",
    "dddd D MMMM",
];

const PLAIN: &[&str] = &[
    "uppercase",
    "lowercase",
    "trim",
    "now",
    "required",
    "string",
    "number",
    "integer",
    "boolean",
    "json",
    "parse_json",
    "length",
    "first",
    "last",
    "sum",
    "round",
    "abs",
    "unique",
    "sort",
    "keys",
    "values",
    "sha256",
    "base64",
    "base64_decode",
    "url_encode",
];

const COMPARISONS: &[&str] = &["==", "!=", "<", "<=", ">", ">=", "in"];

impl Generator {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns an expression, or a template.
    pub(super) fn text(&mut self) -> String {
        match self.below(8) {
            0 => {
                let (first, second) = (self.pipeline(1), self.pipeline(1));
                format!("{{{{ {first} }}}} and {{{{{second}}}}}")
            }
            1 | 2 => self.expression(2),
            3 => format!("source.missing|default({})", self.one(OPERANDS)),
            4 => format!("'' | concat({},{})", self.one(OPERANDS), self.one(OPERANDS)),
            _ => self.pipeline(2),
        }
    }

    fn expression(&mut self, depth: usize) -> String {
        let left = self.pipeline(depth);
        match self.below(6) {
            0 => format!("not {left}"),
            1 => format!("{left} and {}", self.pipeline(depth)),
            2 => format!("{left} or not {}", self.pipeline(depth)),
            _ => {
                let sign = self.one(COMPARISONS);
                let gap = if sign == "in" || self.below(4) > 0 {
                    " "
                } else {
                    ""
                };
                format!("{left}{gap}{sign}{gap}{}", self.pipeline(depth))
            }
        }
    }

    fn pipeline(&mut self, depth: usize) -> String {
        let mut text = match self.below(8) {
            0 if depth > 0 => format!("({})", self.expression(depth - 1)),
            0..=1 => self.one(LITERALS).to_owned(),
            _ => self.one(PATHS).to_owned(),
        };
        for _ in 0..[0, 1, 1, 2, 2, 3][self.below(6)] {
            text.push_str(["|", " | ", " |", "\u{a0}| "][self.below(4)]);
            text.push_str(&self.transform());
        }
        text
    }

    fn transform(&mut self) -> String {
        match self.below(14) {
            0 => format!("decimal({})", self.below(5)),
            1 => format!("date({})", self.one(FORMATS)),
            2 => format!("lookup({})", ["countries", "'countries'"][self.below(2)]),
            3 => format!("lookup(countries, {})", self.one(OPERANDS)),
            4..=5 => format!("default({})", self.one(OPERANDS)),
            6 => format!("concat({})", self.one(OPERANDS)),
            7 => format!("concat( {} ,{})", self.one(OPERANDS), self.one(OPERANDS)),
            8 => format!("split({})", self.one(TEXTS)),
            9 => format!("join( {})", self.one(TEXTS)),
            10 => format!("replace({}, {})", self.one(TEXTS), self.one(TEXTS)),
            11 => match self.below(4) {
                0 => format!("substring({})", [0, 1, -2][self.below(3)]),
                1 => format!("substring({}, 2)", [0, 1, -2][self.below(3)]),
                2 => format!("round({})", self.below(4)),
                _ => format!("mask({})", self.below(5)),
            },
            _ => self.one(PLAIN).to_owned(),
        }
    }

    fn one<'t>(&mut self, of: &[&'t str]) -> &'t str {
        of[self.below(of.len())]
    }

    /// Returns a number below `bound`, by xorshift.
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let bound = u64::try_from(bound).expect("it is a u64");
        usize::try_from((self.0 >> 11) % bound).expect("it is below a usize")
    }
}
