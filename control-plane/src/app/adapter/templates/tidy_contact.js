const countryCodes = { DE: "+49", AT: "+43", CH: "+41", FR: "+33", GB: "+44" };

function transform(input) {
  const names = (input.name ?? "").trim().split(/\s+/);
  const last = names.pop();
  return {
    first_name: names.join(" "),
    last_name: last,
    email: (input.email ?? "").trim().toLowerCase(),
    phone: phone(input.phone ?? "", input.country),
  };
}

function phone(text, country) {
  const digits = text.replace(/[^\d+]/g, "");
  if (digits.startsWith("+")) return digits;
  if (digits.startsWith("00")) return `+${digits.slice(2)}`;
  const code = countryCodes[country];
  if (code === undefined) throw new Error(`no country code for ${country}`);
  return code + digits.replace(/^0/, "");
}
