// Runs first in every world: takes away what adapters do not have, gives them `console`, and hands the caller its tools.
// What it needs later it keeps now, because the adapter may change it.
(function (log) {
  "use strict";
  const { parse, stringify } = JSON;
  const { isFinite } = Number;
  const text = String;
  const apply = Reflect.apply;
  const slice = String.prototype.slice;
  const wellFormed = String.prototype.toWellFormed;
  const Weak = WeakRef;
  const { deref } = Weak.prototype;
  let witness;
  // What the engine makes an error for the want of memory after: where there is none, it gives up before it collects.
  let mould;
  const { create } = Object;
  const lack = InternalError.prototype;

  for (const name of ["eval", "Function", "WeakRef", "FinalizationRegistry", "performance", "queueMicrotask"]) {
    delete globalThis[name];
  }
  for (const made of [function () {}, function* () {}, async function () {}, async function* () {}]) {
    delete Object.getPrototypeOf(made).constructor;
  }
  // State of the engine, which no freezing reaches; and a way to the functions of a stack, also to ours.
  delete Error.prepareStackTrace;
  delete Error.stackTraceLimit;
  const raw = JSON.rawJSON;
  Object.defineProperty(BigInt.prototype, "toJSON", {
    value() { return raw(text(this)); }, writable: true, configurable: true, enumerable: false,
  });

  const shown = (value) => {
    if (typeof value === "string") return value;
    if (value instanceof Error) return text(value);
    if (typeof value === "object" && value !== null) {
      try { return text(stringify(value)); } catch { return text(value); }
    }
    return typeof value === "bigint" ? `${value}n` : text(value);
  };
  const line = (level) => (...values) => {
    let message = "";
    for (let at = 0; at < values.length; at += 1) message += at === 0 ? shown(values[at]) : ` ${shown(values[at])}`;
    log(level, apply(wellFormed, apply(slice, message, [0, 2000]), []));
  };
  globalThis.console = {
    debug: line("debug"), log: line("log"), info: line("info"), warn: line("warn"), error: line("error"),
  };

  const beyond = (key, value) =>
    typeof value === "number" && !isFinite(value) && value === value ? `\u0000${value}` : value;
  const written = (output, infinite) => (infinite ? stringify(output, beyond) : stringify(output));
  return {
    // The output's JSON; undefined for what has none, and a promise as it is.
    call(transform, input, context, infinite) {
      const output = transform(parse(input), parse(context));
      return output instanceof Promise ? output : written(output, infinite);
    },
    made(make, input, context, infinite) {
      const output = make()(parse(input), parse(context));
      return output instanceof Promise ? output : written(output, infinite);
    },
    written,
    // The engine comes to what holds only itself when it collects, which it was told to do once memory is nearly used up.
    watch() {
      const ring = {};
      ring.ring = ring;
      mould ??= create(lack);
      witness = new Weak(ring);
    },
    filled: () => witness === undefined || apply(deref, witness, []) === undefined,
  };
})
