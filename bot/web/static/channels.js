// What people call a channel.

const OWN = { http: "the console", cli: "the command line" };

const capital = (text) => text.replace(/^./, (first) => first.toUpperCase());

/** A platform is called by its name. */
export const called = (channel) => OWN[channel] ?? capital(channel);

/** The same at the beginning of a line. */
export const titled = (channel) => capital(called(channel));
