// A front end over the public client: says something, answers each interrupt as told, prints what it then has.
// node agui_client.cjs URL TEXT ANSWERS: ANSWERS is a JSON list with a resume entry's status and payload each
const { createRequire } = require("node:module");
const { HttpAgent } = createRequire(`${process.env.NOD_TEST_NODE}/`)("@ag-ui/client");

async function main([url, text, answers]) {
  const headers = process.env.NOD_TOKEN ? { Authorization: `Bearer ${process.env.NOD_TOKEN}` } : {};
  const agent = new HttpAgent({ url, threadId: "front-end", headers });
  const events = [];
  agent.subscribe({ onEvent: ({ event }) => void events.push(event.type) });
  agent.addMessage({ id: "m1", role: "user", content: text });
  await agent.runAgent();
  const asked = [];
  for (const answer of JSON.parse(answers)) {
    const [interrupt] = agent.pendingInterrupts;
    asked.push(interrupt);
    await agent.runAgent({ resume: [{ interruptId: interrupt.id, ...answer }] });
  }
  const { messages, state, pendingInterrupts } = agent;
  process.stdout.write(JSON.stringify({ messages, state, asked, pendingInterrupts, events }));
}

main(process.argv.slice(2)).catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
