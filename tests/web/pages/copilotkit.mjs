// A page of CopilotKit's: texts and calls in order, a card with buttons for each interrupt, a box to write in.
import { CopilotChatConfigurationProvider, CopilotKitProvider, useAgent, useCopilotKit, useInterrupt } from "@copilotkit/react-core/v2";
import { HttpAgent } from "@ag-ui/client";
import { createElement as h, useEffect, useState } from "react";
import { createRoot } from "react-dom/client";

const agents = { default: new HttpAgent({ url: "/agui", threadId: new URL(location).searchParams.get("thread") }) };

function Thread() {
  const { agent } = useAgent();
  const { copilotkit } = useCopilotKit();
  const [text, setText] = useState("");
  const cards = useInterrupt({
    renderInChat: false,
    render: ({ interrupts, resolve, cancel }) =>
      interrupts.map(({ id, message }) =>
        h("p", { key: id, className: "card" }, message,
          h("button", { onClick: () => resolve({ approved: true }, id) }, "Approve"),
          h("button", { onClick: () => resolve({ approved: false }, id) }, "Decline"),
          h("button", { onClick: () => resolve({}, id) }, "Later"),
          h("button", { onClick: () => cancel(id) }, "Withdraw"))),
  });
  useEffect(() => void copilotkit.runAgent({ agent }), [agent]); // what the thread has
  const say = (event) => {
    event.preventDefault();
    agent.addMessage({ id: crypto.randomUUID(), role: "user", content: text });
    setText("");
    copilotkit.runAgent({ agent });
  };
  return [
    h("div", { id: "said", key: 1 }, agent.messages.map((m) => [
      m.content && m.role !== "tool" && h("p", { key: m.id, className: m.role }, m.content),
      m.toolCalls?.map((call) => h("p", { key: call.id, className: "call" }, call.function.name)),
    ])),
    h("div", { key: 2 }, cards),
    h("form", { key: 3, onSubmit: say }, h("input", { value: text, onChange: (e) => setText(e.target.value) })),
    h("output", { key: 4 }, agent.isRunning ? "running" : "silent"),
  ];
}

createRoot(document.body).render(
  h(CopilotKitProvider, { selfManagedAgents: agents }, h(CopilotChatConfigurationProvider, { agentId: "default", threadId: agents.default.threadId }, h(Thread))),
);
