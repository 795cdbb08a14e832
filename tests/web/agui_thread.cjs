// A thread over the public client: says each text or message of a list in turn, and prints what it then has.
// node agui_thread.cjs URL: its input is a JSON list of the contents of a user's messages
const { readFileSync } = require("node:fs");
const { createRequire } = require("node:module");
const { HttpAgent } = createRequire(`${process.env.NOD_TEST_NODE}/`)("@ag-ui/client");

async function main([url]) {
  const agent = new HttpAgent({ url, threadId: "front-end" });
  for (const [number, content] of JSON.parse(readFileSync(0, "utf8")).entries()) {
    const resume = agent.pendingInterrupts.map(({ id }) => {
      return { interruptId: id, status: "resolved", payload: { approved: true } };
    });
    agent.addMessage({ id: `m${number + 1}`, role: "user", content });
    await agent.runAgent(resume.length ? { resume } : {});
  }
  const { messages, pendingInterrupts } = agent;
  process.stdout.write(JSON.stringify({ messages, pendingInterrupts }));
}

main(process.argv.slice(2)).catch((error) => {
  process.stderr.write(`${error.stack}\n`);
  process.exit(1);
});
