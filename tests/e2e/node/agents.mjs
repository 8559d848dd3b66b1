// Ask once plainly and once streamed, in the Messages and in the Responses format; print the texts as JSON.
// Run as `node agents.mjs BASE_URL_WITHOUT_V1` with the bodies on standard input.
import { readFileSync } from "node:fs";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";

const bodies = JSON.parse(readFileSync(0, "utf8"));
const options = { apiKey: "sk-right", maxRetries: 0, timeout: 20_000 };
const anthropic = new Anthropic({ ...options, baseURL: process.argv[2] });
const openai = new OpenAI({ ...options, baseURL: `${process.argv[2]}/v1` });

const message = await anthropic.messages.create(bodies.messages);
const streamed = await anthropic.messages.stream(bodies.messages).finalText();
const response = await openai.responses.create(bodies.responses);
let text = "";
for await (const event of await openai.responses.create({ ...bodies.responses, stream: true })) {
  if (event.type === "response.output_text.delta") text += event.delta;
}
console.log(JSON.stringify({ messages: [message.content[0].text, streamed], responses: [response.output_text, text] }));
