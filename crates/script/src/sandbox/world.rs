//! One JavaScript world with an adapter's code in it.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use rquickjs::context::EvalOptions;
use rquickjs::{
    CatchResultExt, CaughtError, Context, Ctx, Error, Exception, Function, Object, Persistent,
    Runtime, Value,
};

use super::Ran;
use super::clock::Clock;
use super::{position, statement};
use crate::failure::{Failure, Kind, Position};
use crate::limits::Limits;
use crate::wire::Log;

const PRELUDE: &str = include_str!("prelude.js");
const FREEZE: &str = include_str!("freeze.js");
/// The file name that our own code runs under.
const OURS: &str = "kanat.js";
/// Wrapper of a frozen world's code: everything in it is made anew by each call. One line stands
/// above the code.
const AROUND: (&str, &str) = (
    "(function () { \"use strict\";\n",
    "\n;return transform; })",
);
/// Bytes of a world that is kept; a new one takes a few hundred thousand.
const LARGE: i64 = 4 << 20;
/// How deep the engine's own stack may get.
const STACK: usize = 1 << 20;
/// How many classes of an error are looked at.
const MAX_CLASSES: usize = 8;
/// Number of lines and bytes that one call may log; a note stands in the place of the rest.
const LOGS: (usize, usize) = (100, 16 << 10);

pub(super) struct World {
    // Dropped before the runtime that it lives in.
    /// `transform` of a fresh world, what makes it in a frozen one.
    code: Persistent<Function<'static>>,
    /// The tool that calls it.
    call: Persistent<Function<'static>>,
    /// Lines above the code.
    above: u32,
    /// It is for one message.
    is_fresh: bool,
    bare: Bare,
}

/// A world without an adapter's code in it.
pub(super) struct Bare {
    // Dropped before the runtime that they live in.
    tools: Tools,
    context: Context,
    runtime: Runtime,
    clock: Rc<Clock>,
    logs: Rc<RefCell<Vec<Log>>>,
    limits: Limits,
}

/// Functions of the prelude.
struct Tools {
    /// Calls what a fresh world has, and what a frozen one has.
    call: Persistent<Function<'static>>,
    made: Persistent<Function<'static>>,
    written: Persistent<Function<'static>>,
    /// Looks from now on whether memory is nearly used up; says whether it was, or nobody looked.
    watch: Persistent<Function<'static>>,
    filled: Persistent<Function<'static>>,
}

impl Bare {
    /// Errors when there is no memory for it.
    pub fn new(limits: Limits) -> Result<Self, Failure> {
        let broken = |error: Error| Failure::unavailable(error);
        let runtime = Runtime::new().map_err(broken)?;
        runtime.set_memory_limit(limits.memory);
        runtime.set_max_stack_size(STACK);
        let clock = Rc::new(Clock::default());
        // What runs before the code is ours, and ends.
        clock.start(Duration::MAX);
        let ticking = Rc::clone(&clock);
        runtime.set_interrupt_handler(Some(Box::new(move || ticking.is_over())));
        let context = Context::full(&runtime).map_err(broken)?;
        let logs = Rc::new(RefCell::new(Vec::new()));
        let tools = context.with(|ctx| {
            let tools = prelude(&ctx, &logs).catch(&ctx);
            let tools = tools.map_err(|caught| {
                failure(
                    caught,
                    &clock,
                    Source { code: "", above: 0 },
                    limits,
                    || true,
                )
            })?;
            let keep = |name: &str| {
                tools
                    .get(name)
                    .map(|tool: Function| Persistent::save(&ctx, tool))
                    .map_err(broken)
            };
            let [call, made, written] = [keep("call")?, keep("made")?, keep("written")?];
            Ok(Tools {
                call,
                made,
                written,
                watch: keep("watch")?,
                filled: keep("filled")?,
            })
        })?;
        Ok(Self {
            tools,
            context,
            runtime,
            clock,
            logs,
            limits,
        })
    }

    /// Looks whether memory is nearly used up, in a world for one message: what it leaves to be
    /// collected goes with it.
    fn watch(&self) {
        self.runtime.set_gc_threshold(self.limits.memory / 8 * 7);
        // Where that fails, nobody looks.
        let _ = self
            .context
            .with(|ctx| self.tools.watch.clone().restore(&ctx)?.call::<_, ()>(()));
    }

    /// Returns whether it was filled; if that is not known, it may have been.
    fn was_filled(&self, ctx: &Ctx<'_>) -> bool {
        let filled = self
            .tools
            .filled
            .clone()
            .restore(ctx)
            .and_then(|filled| filled.call(()));
        // No memory for the question is an answer.
        filled.catch(ctx).unwrap_or(true)
    }
}

impl World {
    /// A world for one message. Errors when the code does not run, or defines no `transform`.
    pub fn fresh(bare: Bare, allowed: Duration, code: &str) -> Result<Self, Failure> {
        let call = bare.tools.call.clone();
        bare.watch();
        Self::new(bare, allowed, call, Source { code, above: 0 }, |ctx| {
            eval::<Value>(ctx, code, position::FILE)?;
            eval::<Value>(
                ctx,
                "typeof transform === 'function' ? transform : undefined",
                OURS,
            )
        })
    }

    /// A world for any number of messages. Errors when the code is not right in strict mode, too.
    pub fn frozen(bare: Bare, allowed: Duration, code: &str) -> Result<Self, Failure> {
        let call = bare.tools.made.clone();
        Self::new(bare, allowed, call, Source { code, above: 1 }, |ctx| {
            eval::<Function>(ctx, FREEZE, OURS)?.call::<_, ()>(())?;
            eval::<Value>(
                ctx,
                &format!("{}{code}{}", AROUND.0, AROUND.1),
                position::FILE,
            )
        })
    }

    fn new(
        bare: Bare,
        allowed: Duration,
        call: Persistent<Function<'static>>,
        source: Source<'_>,
        load: impl for<'js> FnOnce(&Ctx<'js>) -> rquickjs::Result<Value<'js>>,
    ) -> Result<Self, Failure> {
        bare.clock.start(allowed);
        let made = bare.context.with(|ctx| {
            let made = load(&ctx).catch(&ctx);
            let made = made.map_err(|caught| {
                failure(caught, &bare.clock, source, bare.limits, || {
                    bare.was_filled(&ctx)
                })
            })?;
            let function = made.into_function();
            function
                .map(|function| Persistent::save(&ctx, function))
                .ok_or_else(|| {
                    Failure::new(
                        Kind::Code,
                        "the code has no function transform(input, context)",
                    )
                })
        });
        let code = made.map_err(|failure| match failure.kind {
            Kind::Thrown => Failure {
                kind: Kind::Code,
                ..failure
            },
            Kind::Code | Kind::Time | Kind::Memory | Kind::Unavailable => failure,
        })?;
        Ok(Self {
            code,
            call,
            above: source.above,
            is_fresh: source.above == 0,
            bare,
        })
    }

    /// Runs the code, which is `code`, on input and context. Gives JSON, nothing for undefined.
    pub fn run(
        &mut self,
        code: &str,
        [input, context]: [&str; 2],
        infinite: bool,
        allowed: Duration,
    ) -> Ran {
        let bare = &self.bare;
        let source = Source {
            code,
            above: self.above,
        };
        if self.is_fresh {
            bare.watch();
        }
        bare.clock.start(allowed);
        bare.logs.borrow_mut().clear();
        let outcome = bare.context.with(|ctx| {
            let run = || {
                let call = self.call.clone().restore(&ctx)?;
                let output: Value =
                    call.call((self.code.clone().restore(&ctx)?, input, context, infinite))?;
                let Some(promise) = output.as_promise() else {
                    return text(output);
                };
                let settled: Value = promise.finish()?;
                text(
                    bare.tools
                        .written
                        .clone()
                        .restore(&ctx)?
                        .call((settled, infinite))?,
                )
            };
            run().catch(&ctx).map_err(|caught| {
                failure(caught, &bare.clock, source, bare.limits, || {
                    bare.was_filled(&ctx)
                })
            })
        });
        (std::mem::take(&mut *bare.logs.borrow_mut()), outcome)
    }

    /// Returns whether it holds more than an idle world should.
    pub fn is_large(&self) -> bool {
        self.bare.runtime.run_gc();
        self.bare.runtime.memory_usage().malloc_size > LARGE
    }

    /// Returns whether no job of the last message is left to be run.
    pub fn is_clean(&self) -> bool {
        !self.bare.runtime.is_job_pending()
    }
}

fn text(output: Value<'_>) -> rquickjs::Result<Option<String>> {
    output
        .into_string()
        .map(|text| text.to_string())
        .transpose()
}

fn eval<'js, V: rquickjs::FromJs<'js>>(
    ctx: &Ctx<'js>,
    code: &str,
    file: &str,
) -> rquickjs::Result<V> {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(file.to_owned());
    ctx.eval_with_options(code, options)
}

/// Runs the prelude, and gives its tools.
fn prelude<'js>(ctx: &Ctx<'js>, logs: &Rc<RefCell<Vec<Log>>>) -> rquickjs::Result<Object<'js>> {
    let logs = Rc::clone(logs);
    let log = move |level: String, message: String| {
        let mut logs = logs.borrow_mut();
        let bytes: usize = logs.iter().map(|log: &Log| log.message.len()).sum();
        if logs.len() < LOGS.0 && bytes + message.len() <= LOGS.1 {
            logs.push(Log { level, message });
        } else if logs.last().is_some_and(|last| last.level != LEFT_OUT.0) {
            logs.push(Log {
                level: LEFT_OUT.0.to_owned(),
                message: LEFT_OUT.1.to_owned(),
            });
        }
    };
    eval::<Function>(ctx, PRELUDE, OURS)?.call((Function::new(ctx.clone(), log)?,))
}

const LEFT_OUT: (&str, &str) = ("kanat", "further lines are left out");

/// An adapter's code as it was written.
#[derive(Clone, Copy)]
struct Source<'a> {
    code: &'a str,
    /// Lines of ours that stand above it in what the engine was given.
    above: u32,
}

impl Source<'_> {
    /// Returns the position at which an error was made.
    fn place(self, exception: &Exception<'_>) -> Option<Position> {
        let classes = classes(exception.as_object());
        let place = position::of(&exception.stack()?, self.above, &classes)?;
        let begin = classes
            .first()
            .and_then(|class| statement::begin(self.code, place, class));
        Some(begin.unwrap_or(place))
    }
}

/// The names of the classes that an object is of, its own first. The code may give any names.
fn classes<'js>(object: &Object<'js>) -> Vec<String> {
    let class = object.get::<_, Object<'js>>("constructor").ok();
    // By a property: one that throws is told as an error, where a prototype's would be a panic of
    // the bindings.
    let parent = |class: &Object<'js>| class.get::<_, Object<'js>>("__proto__").ok();
    let classes = std::iter::successors(class, parent).take(MAX_CLASSES);
    classes.map_while(|class| class.get("name").ok()).collect()
}

/// Returns the failure in words, with the position in the code where it is known.
fn failure(
    caught: CaughtError<'_>,
    clock: &Clock,
    source: Source<'_>,
    limits: Limits,
    was_filled: impl FnOnce() -> bool,
) -> Failure {
    let out_of_time = || Failure::new(Kind::Time, "the adapter used up its time");
    if clock.was_stopped() {
        let place = match &caught {
            CaughtError::Exception(exception) => exception
                .stack()
                .and_then(|stack| position::of(&stack, source.above, &[])),
            CaughtError::Value(_) | CaughtError::Error(_) => None,
        };
        return Failure {
            position: place,
            ..out_of_time()
        };
    }
    let out_of_memory = || {
        let message = format!(
            "the adapter used up its memory of {} MiB",
            limits.memory >> 20
        );
        Failure::new(Kind::Memory, message)
    };
    match caught {
        CaughtError::Exception(exception) => {
            let message = exception.message().unwrap_or_default();
            if message == "out of memory" {
                return out_of_memory();
            }
            let name: Option<String> = exception.get("name").ok();
            let message = match name.filter(|name| !name.is_empty()) {
                Some(name) if message.is_empty() => name,
                Some(name) => format!("{name}: {message}"),
                None => message,
            };
            let position = source.place(&exception);
            // To be asked for it is a call of the code, too.
            if clock.was_stopped() {
                return out_of_time();
            }
            Failure {
                position,
                ..Failure::new(Kind::Thrown, cut(message))
            }
        }
        // The engine throws null when there is no memory left for an error. Code may throw it, too.
        CaughtError::Value(value) if value.is_null() && was_filled() => out_of_memory(),
        CaughtError::Value(value) => {
            let shown = value.ctx().json_stringify(value.clone()).ok().flatten();
            // To be shown is a call of the code, too.
            if clock.was_stopped() {
                return out_of_time();
            }
            let shown = shown
                .and_then(|shown| shown.to_string().ok())
                .unwrap_or_else(|| value.type_name().to_string());
            Failure::new(Kind::Thrown, cut(format!("the adapter threw {shown}")))
        }
        CaughtError::Error(Error::WouldBlock) => Failure::new(
            Kind::Thrown,
            "the promise that the adapter gave is never settled",
        ),
        CaughtError::Error(Error::Allocation) => out_of_memory(),
        CaughtError::Error(error) => Failure::new(Kind::Thrown, error.to_string()),
    }
}

/// Messages are the code's, and of any length.
fn cut(mut message: String) -> String {
    const MAX_CHARACTERS: usize = 1_000;
    if let Some((end, _)) = message.char_indices().nth(MAX_CHARACTERS) {
        message.truncate(end);
        message.push('…');
    }
    message
}
