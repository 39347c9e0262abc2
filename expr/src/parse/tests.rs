//! Goal: texts are parsed as intended, and printed trees parse as the same trees. Method: trees, printed with all their
//! parentheses, are compared with expected texts. Random trees are printed and parsed.

use crate::ast::{
    BinaryOp, CastKind, CharKind, Expr, ExprKind, Literal, Span, Suffix, TypeName, UnaryOp,
};
use crate::parse::{MAX_HEIGHT, MAX_LENGTH, parse, parse_assignment, parse_with};

fn printed(text: &str) -> String {
    match parse(text) {
        Ok(expr) => expr.to_string(),
        Err(error) => panic!("{text}: {error}"),
    }
}

#[track_caller]
fn reads(pairs: &[(&str, &str)]) {
    for (text, meant) in pairs {
        assert_eq!(printed(text), *meant, "{text}");
        assert_eq!(printed(meant), *meant, "printed text reads back");
    }
}

#[track_caller]
fn refuses(pairs: &[(&str, &str)]) {
    for (text, why) in pairs {
        match parse(text) {
            Ok(expr) => panic!("{text} was read as {expr}"),
            Err(error) => assert_eq!(error.one_line(), *why, "{text}"),
        }
    }
}

#[test]
fn operators_bind_as_in_c() {
    reads(&[
        ("a+b*c", "(a + (b * c))"),
        ("a-b-c", "((a - b) - c)"),
        ("a<<1+b", "(a << (1 + b))"),
        ("a&b==c", "(a & (b == c))"),
        ("a|b^c&d", "(a | (b ^ (c & d)))"),
        ("a||b&&c", "(a || (b && c))"),
        ("a===b!==c", "((a == b) != c)"),
        ("a>=b>>c", "(a >= (b >> c))"),
        ("a?b:c?d:e", "(a ? b : (c ? d : e))"),
        ("a ? b ? c : d : e", "(a ? (b ? c : d) : e)"),
        ("!a&&~b", "((!a) && (~b))"),
        ("- -x", "(-(-x))"),
        ("a--b", "(a - (-b))"),
        ("a&&&b", "(a && (&b))"),
        ("*p->next.x[1]", "(*p->next.x[1])"),
        ("&*p", "(&(*p))"),
        ("&mut x", "(&x)"),
        ("&mut + 1", "((&r#mut) + 1)"),
        ("*array@n", "((*array) @ n)"),
        ("a@n+1<<2", "((a @ (n + 1)) << 2)"),
        ("-x as u8 * 2", "(((u8)(-x)) * 2)"),
        ("a* *b", "(a * (*b))"),
        ("**pp * 2", "((*(*pp)) * 2)"),
    ]);
}

#[test]
fn names_have_scopes_and_template_arguments() {
    reads(&[
        ("ns::f<int>::x", "ns::f<int>::x"),
        (":: x", "::x"),
        ("a < b", "(a < b)"),
        ("a<b>::c", "a<b>::c"),
        ("a<b>c", "((a < b) > c)"),
        ("max<int>(a,b)", "max::<int>(a, b)"),
        ("map< K , std::vector<V> >::x", "map<K, std::vector<V>>::x"),
        ("a<-1, 'x>::b", "a<-1, 'x>::b"),
        ("Vec::<u8>::MAX", "Vec<u8>::MAX"),
        (
            "(anonymous namespace)::count",
            "(anonymous namespace)::count",
        ),
        ("a::{closure#0}::b", "a::{closure#0}::b"),
        ("p->Base::x", "p->Base::x"),
        ("p->Base<int>::x<y", "(p->Base<int>::x < y)"),
        ("i<n&&j>m", "((i < n) && (j > m))"),
        ("r#true", "r#true"),
        ("r#type", "type"),
        ("as+1", "(r#as + 1)"),
        ("&f64 + 1", "((&r#f64) + 1)"),
    ]);
}

#[test]
fn members_elements_and_calls_follow_each_other() {
    reads(&[
        ("args[0]>5", "(args[0] > 5)"),
        ("args.0", "args.0"),
        ("t.0.1.x", "t.0.1.x"),
        ("v[1..3]", "v[(1)..(3)]"),
        ("v[..n]", "v[..n]"),
        ("v[n..]", "v[n..]"),
        ("v[..]", "v[..]"),
        ("v[0..=n+1]", "v[(0)..=(n + 1)]"),
        ("f(a,-b)(c)", "f(a, (-b))(c)"),
        ("s.len()", "s.len()"),
        ("$rax+$xmm0", "($rax + $xmm0)"),
        ("$1+$x-$", "(($1 + $x) - $)"),
        ("$$2->x*$$", "($$2->x * $$)"),
        ("1.max(2)", "(1).max(2)"),
    ]);
}

#[test]
fn conversions_are_told_from_parentheses() {
    reads(&[
        ("(int)x", "((int)x)"),
        ("(int)-x*2", "(((int)(-x)) * 2)"),
        ("(unsigned long int)(x)", "((unsigned long int)x)"),
        ("(struct foo*)p->q", "((struct foo*)p->q)"),
        ("(ns::T<int> const *)p", "((ns::T<int> const*)p)"),
        ("(T*)(p)", "((T*)p)"),
        ("(T)x", "(x as T)"),
        ("(T)!x", "((!x) as T)"),
        ("(T)!=x", "(T != x)"),
        ("(a)-b", "(a - b)"),
        ("(a)*b", "(a * b)"),
        ("(a)(b)", "a(b)"),
        ("(a)->b", "a->b"),
        ("(a)&&b", "(a && b)"),
        ("(a[3])", "a[3]"),
        ("(a&b)", "(a & b)"),
        ("(void (*)(int, char*))p", "((void (*)(int, char*))p)"),
        ("*(int(*)[4])p", "(*((int (*)[4])p))"),
        ("(T (**)[2][3])p", "((T (**)[2][3])p)"),
        ("(*const u8)p", "((*const u8)p)"),
        ("(&str)p", "((&str)p)"),
        ("(&x)", "(&x)"),
        ("p as *mut T as usize<5", "(((usize)((*mut T)p)) < 5)"),
        ("x as [u8; 4]", "(([u8; 4])x)"),
        ("x as (i32,u8)", "(((i32, u8))x)"),
        ("x as &dyn Shape", "((&dyn Shape)x)"),
        ("(x) as u8", "((u8)x)"),
        ("sizeof(int)*2", "((sizeof(int)) * 2)"),
        ("sizeof(x)*2", "((sizeof x) * 2)"),
        ("sizeof x.y", "(sizeof x.y)"),
        ("sizeof(T*)", "(sizeof(T*))"),
        ("alignof(int)*2", "((alignof(int)) * 2)"),
        ("_Alignof (x.y)", "(alignof(x.y))"),
        ("alignof+1", "(alignof + 1)"),
    ]);
    let is_type = |name: &str| name == "T" || name == "a<b>";
    let with = |text: &str| parse_with(text, &is_type).unwrap().to_string();
    assert_eq!(with("(T)-x"), "((-x) as T)");
    assert_eq!(with("2*(T)*p+1"), "((2 * ((*p) as T)) + 1)");
    assert_eq!(with("(T)(x)+1"), "((x as T) + 1)");
    assert_eq!(with("(U)-x"), "(U - x)");
    assert_eq!(with("(T)->x"), "T->x");
    assert_eq!(with("sizeof(T)"), "(sizeof(T))");
    assert_eq!(with("(a<b>)-1"), "((-1) as a<b>)".replace("-1", "-(1)"));
}

#[test]
fn values_are_read_in_every_language() {
    let literal = |text: &str| match parse(text).map(|e| e.kind) {
        Ok(ExprKind::Literal(literal)) => literal,
        other => panic!("{text}: {other:?}"),
    };
    let number = |value, decimal, suffix| Literal::Integer {
        value,
        decimal,
        suffix,
    };
    let sized = |signed, bits| Suffix::Sized { signed, bits };
    assert_eq!(literal("42"), number(42, true, Suffix::None));
    assert_eq!(literal("0"), number(0, true, Suffix::None));
    assert_eq!(literal("1_000'000"), number(1_000_000, true, Suffix::None));
    assert_eq!(literal("0xFFul"), number(255, false, Suffix::UnsignedLong));
    assert_eq!(literal("017"), number(15, false, Suffix::None));
    assert_eq!(literal("0o17"), number(15, false, Suffix::None));
    assert_eq!(literal("0b1_01u8"), number(5, false, sized(false, 8)));
    assert_eq!(literal("7LL"), number(7, true, Suffix::Long));
    assert_eq!(literal("128u8"), number(128, true, sized(false, 8)));
    let most = u128::MAX;
    assert_eq!(
        literal(&format!("{most}")),
        number(most, true, Suffix::None)
    );
    let float = |value, single| Literal::Float { value, single };
    assert_eq!(literal("1.5"), float(1.5, false));
    assert_eq!(literal("1e-3"), float(1e-3, false));
    assert_eq!(literal(".5f"), float(0.5, true));
    assert_eq!(literal("1."), float(1.0, false));
    assert_eq!(literal("2f64"), float(2.0, false));
    assert_eq!(literal("0.1f"), float(f64::from(0.1f32), true));
    assert_eq!(literal("0x1.8p3"), float(12.0, false));
    let character = |code, kind| Literal::Char { code, kind };
    assert_eq!(literal("'a'"), character(97, CharKind::Plain));
    assert_eq!(literal(r"'\n'"), character(10, CharKind::Plain));
    assert_eq!(literal(r"'\0'"), character(0, CharKind::Plain));
    assert_eq!(literal(r"'\xff'"), character(255, CharKind::Plain));
    assert_eq!(literal(r"'\u{1F600}'"), character(0x1f600, CharKind::Plain));
    assert_eq!(literal("'\u{e9}'"), character(0xe9, CharKind::Plain));
    assert_eq!(literal("b'a'"), character(97, CharKind::Byte));
    assert_eq!(literal("L'a'"), character(97, CharKind::Wide));
    let text = |text: &[u8]| Literal::Text(text.to_vec());
    assert_eq!(
        literal(r#""a\"b\x41\101\u00e9""#),
        text("a\"bAA\u{e9}".as_bytes())
    );
    assert_eq!(literal("'ab'"), text(b"ab"));
    assert_eq!(literal(r##"r#"a\"b"#"##), text(b"a\\\"b"));
    assert_eq!(literal(r#"b"\xff""#), text(b"\xff"));
    assert_eq!(literal("nullptr"), Literal::Null);
    assert_eq!(literal("true"), Literal::Bool(true));
}

#[test]
fn mistakes_are_said_with_their_place() {
    refuses(&[
        ("", "expected an expression at position 0"),
        ("a == ", "expected an expression at position 5"),
        ("x > ", "expected an expression at position 4"),
        ("a +* ", "expected an expression at position 5"),
        (
            "a b",
            "expected an operator or the end, found \"b\" at position 2",
        ),
        ("(a", "expected an operator or \")\" at position 2"),
        (
            "f(a b)",
            "expected \",\" or \")\", found \"b\" at position 4",
        ),
        ("a[1", "expected \"]\" or \"..\" at position 3"),
        ("p->", "expected the name of a member at position 3"),
        ("a ? b", "expected \":\" at position 5"),
        ("x as 3", "expected a type, found \"3\" at position 5"),
        (
            "x = 1",
            "\"=\" assigns and is not allowed here at position 2; to compare, write \"==\"; to change a value: set x = 3",
        ),
        (
            "x++",
            "expected an expression at position 3; to change a value: set x = x + 1",
        ),
        (
            "x += 1",
            "expected an operator or the end, found \"+\" at position 2",
        ),
        (
            "$ rax",
            "expected an operator or the end, found \"rax\" at position 2",
        ),
        (
            "$(\"x\")",
            "expected the name of a register, found \"(\" at position 1",
        ),
        ("0x", "\"0x\" has no digits at position 0"),
        (
            "019",
            "\"9\" does not belong to the octal number at position 0",
        ),
        (
            "1 + 2q",
            "\"q\" does not belong to the number at position 4",
        ),
        ("256u8", "256u8 is too large for its type at position 0"),
        (
            "1e999",
            "1e999 is too large for a floating-point number at position 0",
        ),
        (
            "'a",
            "the text in quotes has no end: expected ' at position 0",
        ),
        (
            "''",
            "expected a character between the quotes at position 0",
        ),
        (
            r#""\q""#,
            "unknown escape at position 1; a backslash itself is written as \\\\",
        ),
        (
            "a.b c",
            "expected an operator or the end, found \"c\" at position 4",
        ),
        (
            "++i",
            "\"++\" and \"--\" are not supported at position 0; write \"+ 1\" or \"- 1\"",
        ),
        (
            "1 + a ** b",
            "there is no operator \"**\" at position 6; write \"a * a\", or \"a * *p\"",
        ),
    ]);
}

#[test]
fn positions_are_bytes_of_the_text() {
    let text = " ( \u{e9}x + p->y[2] )";
    let expr = parse(text).unwrap();
    let shown = |e: &Expr| text[e.at.start..e.at.end].to_owned();
    assert_eq!(shown(&expr), "( \u{e9}x + p->y[2] )");
    let ExprKind::Binary(_, left, right) = &expr.kind else {
        panic!("{expr:?}");
    };
    assert_eq!(
        (shown(left), shown(right)),
        ("\u{e9}x".into(), "p->y[2]".into())
    );
}

#[test]
fn assignments_are_read_only_where_they_are_asked_for() {
    let read = |text: &str| parse_assignment(text).map(|a| format!("{} := {}", a.place, a.value));
    assert_eq!(read("p->a[3] = 5").unwrap(), "p->a[3] := 5");
    assert_eq!(read("x+=y*2").unwrap(), "x := (x + (y * 2))");
    assert_eq!(read("x <<= 1").unwrap(), "x := (x << 1)");
    assert_eq!(read("x=-1").unwrap(), "x := (-(1))");
    assert_eq!(read("s.name = \"new\"").unwrap(), "s.name := \"new\"");
    let refused = |text: &str| read(text).unwrap_err().to_string();
    assert_eq!(refused("x"), "expected \"=\" and a value at position 1");
    assert_eq!(
        refused("x == 1"),
        "expected \"=\" and a value at position 6"
    );
    assert_eq!(refused("x ="), "expected an expression at position 3");
}

#[test]
fn depth_and_length_are_bounded() {
    let deep = usize::from(MAX_HEIGHT) * 10;
    for (open, close) in [("(", ")"), ("-", ""), ("a[", "]"), ("f(", ")"), ("a<", ">")] {
        let text = format!("{}x{}", open.repeat(deep), close.repeat(deep));
        assert!(parse(&text).is_err(), "{open}");
    }
    for chain in [
        "x+", "x.", "x==1?y:", "(int)", "sizeof ", "*&", "x<y<", "(a<b>::", "(a,",
    ] {
        let error = parse(&format!("{}x", chain.repeat(deep))).unwrap_err();
        assert!(error.position <= MAX_LENGTH, "{chain}: {error}");
    }
    let fits = format!("x{}", " + x".repeat(100));
    assert_eq!(parse(&fits).unwrap().height(), 101);
    assert!(parse(&" ".repeat(MAX_LENGTH + 1)).is_err());
}

/// Random trees.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % bound
    }

    fn one<'x, T: ?Sized>(&mut self, of: &[&'x T]) -> &'x T {
        of[self.below(of.len())]
    }

    fn boxed(&mut self, depth: usize) -> Box<Expr> {
        Box::new(self.expr(depth))
    }

    fn expr(&mut self, depth: usize) -> Expr {
        let kind = match self.below(if depth == 0 { 4 } else { 15 }) {
            0 => ExprKind::Name(
                self.one(&[
                    "x",
                    "::y",
                    "ns::T<int>::z",
                    "a::{closure#0}",
                    "true_",
                    "null",
                    "\u{fc}",
                ])
                .to_owned(),
            ),
            1 => ExprKind::Register("rax".to_owned()),
            2 | 3 => ExprKind::Literal(self.literal()),
            4 => ExprKind::Member {
                of: self.boxed(depth - 1),
                name: self.one(&["x", "0", "12", "Base::y", "null"]).to_owned(),
                arrow: self.below(2) == 0,
            },
            5 => ExprKind::Index {
                of: self.boxed(depth - 1),
                index: self.boxed(depth - 1),
            },
            6 => self.range(depth - 1),
            7 => ExprKind::Unary(self.unary(), self.boxed(depth - 1)),
            8..=10 => {
                let op = BinaryOp::SPELLINGS[self.below(BinaryOp::SPELLINGS.len())].1;
                ExprKind::Binary(op, self.boxed(depth - 1), self.boxed(depth - 1))
            }
            11 => ExprKind::Conditional {
                condition: self.boxed(depth - 1),
                if_true: self.boxed(depth - 1),
                if_false: self.boxed(depth - 1),
            },
            12 => ExprKind::Cast {
                how: [CastKind::Plain, CastKind::Static, CastKind::Dynamic][self.below(3)],
                to: self.type_name(),
                of: self.boxed(depth - 1),
            },
            13 => match self.below(2) {
                0 => ExprKind::SizeOf(self.boxed(depth - 1)),
                _ => ExprKind::SizeOfType(TypeName {
                    text: self.one(&["int", "T*", "[u8; 3]"]).to_owned(),
                    certain: true,
                }),
            },
            _ => ExprKind::Call {
                function: self.boxed(depth - 1),
                arguments: (0..self.below(3)).map(|_| self.expr(depth - 1)).collect(),
            },
        };
        Expr::new(kind, Span::default())
    }

    fn range(&mut self, depth: usize) -> ExprKind {
        let inclusive = self.below(2) == 0;
        let to = inclusive || self.below(2) == 0;
        ExprKind::Range {
            of: self.boxed(depth),
            from: (self.below(2) == 0).then(|| self.boxed(depth)),
            to: to.then(|| self.boxed(depth)),
            inclusive,
        }
    }

    fn unary(&mut self) -> UnaryOp {
        *self.one(&[
            &UnaryOp::Deref,
            &UnaryOp::AddressOf,
            &UnaryOp::Negate,
            &UnaryOp::Plus,
            &UnaryOp::Not,
            &UnaryOp::Complement,
        ])
    }

    fn type_name(&mut self) -> TypeName {
        let certain = self.below(4) != 0;
        let text = match certain {
            true => self.one(&[
                "int",
                "unsigned long",
                "T*",
                "const char*",
                "*const u8",
                "u8",
            ]),
            false => self.one(&["T", "ns::T<int, 3>"]),
        };
        TypeName {
            text: text.to_owned(),
            certain,
        }
    }

    fn literal(&mut self) -> Literal {
        let value = (self.below(1 << 30) as u128) << self.below(34);
        match self.below(6) {
            0 => Literal::Integer {
                value,
                decimal: self.below(2) == 0,
                suffix: *self.one(&[&Suffix::None, &Suffix::Long, &Suffix::UnsignedLong]),
            },
            1 => Literal::Float {
                value: value as f64 / 1024.0,
                single: false,
            },
            2 => Literal::Char {
                code: self.below(0x10_ffff) as u32,
                kind: *self.one(&[&CharKind::Plain, &CharKind::Byte, &CharKind::Utf8]),
            },
            3 => Literal::Text((0..self.below(9)).map(|_| self.below(256) as u8).collect()),
            4 => Literal::Bool(self.below(2) == 0),
            _ => Literal::Null,
        }
    }
}

#[test]
fn every_tree_reads_back_from_its_text() {
    let mut random = Random(7);
    for _ in 0..20_000 {
        let tree = random.expr(4);
        let text = tree.to_string();
        let read = parse(&text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(read.without_positions(), tree, "{text}");
    }
}
