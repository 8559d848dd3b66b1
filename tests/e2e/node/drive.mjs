// Drive the `openai` npm package through every scene; print what came back as JSON.
// Run as `node drive.mjs BASE_URL` with the bodies on standard input.
import { readFileSync } from "node:fs";
import OpenAI, { APIError } from "openai";
import { VERSION } from "openai/version";

const bodies = JSON.parse(readFileSync(0, "utf8"));
const options = { baseURL: process.argv[2], apiKey: "sk-right", maxRetries: 0, timeout: 20_000 };
const client = new OpenAI(options);
const ASK = [{ role: "user", content: "Hello" }];
const tools = [{ type: "function", function: { name: "lookup", parameters: { type: "object", properties: {} } } }];
const create = (body) => client.chat.completions.create(body);

async function plain() {
  const answer = await create({ model: "gpt-4o", messages: ASK });
  return { text: answer.choices[0].message.content, prompt_tokens: answer.usage.prompt_tokens };
}

async function streamed(stream) {
  let text = "";
  let usage = null;
  for await (const chunk of stream) {
    usage = chunk.usage ?? usage;
    for (const choice of chunk.choices) text += choice.delta.content ?? "";
  }
  return { text, prompt_tokens: usage?.prompt_tokens ?? null };
}

async function toolCall() {
  const answer = await create({ model: "caller", messages: ASK, tools });
  const message = answer.choices[0].message;
  const [call] = message.tool_calls;
  const result = { role: "tool", tool_call_id: call.id, content: "sent" };
  const then = await create({ model: "caller", messages: [...ASK, message, result], tools });
  return {
    name: call.function.name,
    arguments: call.function.arguments,
    finish: answer.choices[0].finish_reason,
    then: then.choices[0].message.content,
  };
}

async function toolStream() {
  const told = { name: "", arguments: "", finish: null };
  for await (const chunk of await create({ model: "caller", messages: ASK, tools, stream: true })) {
    for (const choice of chunk.choices) {
      told.finish = choice.finish_reason ?? told.finish;
      for (const call of choice.delta.tool_calls ?? []) {
        told.name += call.function.name ?? "";
        told.arguments += call.function.arguments ?? "";
      }
    }
  }
  return told;
}

async function long(body) {
  const { data, response } = await create(body).withResponse();
  const text = body.stream ? (await streamed(data)).text : data.choices[0].message.content;
  return { text, action: response.headers.get("x-turnfold-action") };
}

async function failure(ask) {
  try {
    await ask();
  } catch (error) {
    if (!(error instanceof APIError)) throw error;
    return { class: error.constructor.name, status: error.status, code: error.code };
  }
  return { class: null };
}

const usage = { stream: true, stream_options: { include_usage: true } };
const embedded = await client.embeddings.create({ model: "e", input: ["a", "b"], encoding_format: "float" });
const ids = [];
for await (const model of client.models.list()) ids.push(model.id);
const stranger = new OpenAI({ ...options, apiKey: "sk-wrong" });
const told = {
  plain: await plain(),
  stream: await streamed(await create({ model: "gpt-4o", messages: ASK, ...usage })),
  tools: await toolCall(),
  tools_stream: await toolStream(),
  long: await long(bodies.long),
  long_stream: await long({ ...bodies.long, stream: true }),
  embeddings: { rows: embedded.data.length },
  models: { ids },
  too_long: await failure(() => create(bodies.too_long)),
  wrong_key: await failure(() => stranger.chat.completions.create({ model: "gpt-4o", messages: ASK })),
};
for (const model of bodies.errors) told[model] = await failure(() => create({ model, messages: ASK }));
process.stdout.write(JSON.stringify({ version: VERSION, told }));
