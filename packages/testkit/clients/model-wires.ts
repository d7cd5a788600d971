// The three ways in which clients talk to a model, as far as a scripted model needs them: which tools are offered, what a tool has answered, how to answer.

export type Json = Readonly<Record<string, unknown>>

/** A tool as the client offers it to its model. */
export interface OfferedTool {
  readonly name: string
  /** Codex groups tools under a namespace of their own. */
  readonly namespace?: string
  readonly schema: Json
}

/** What a request holds. */
export interface ModelRequest {
  readonly tools: readonly OfferedTool[]
  /** The outputs of tools so far, as text. */
  readonly outputs: readonly string[]
}

/** What the model says next. */
export type ModelTurn = { readonly call: OfferedTool; readonly args: Json } | { readonly say: string }

/** One protocol between client and model. */
export interface ModelWire {
  /** Whether a path belongs to it. */
  matches(path: string): boolean
  read(body: Json): ModelRequest
  /** The answer's body and content type. */
  write(turn: ModelTurn, body: Json, path: string): { readonly type: string; readonly text: string }
}

const USAGE_TOKENS = 1
const list = (value: unknown): readonly Json[] => (Array.isArray(value) ? (value as Json[]) : [])
const asText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value ?? ''))
const json = (value: unknown): string => JSON.stringify(value)

/** OpenAI Responses, streamed (Codex). */
export const responses: ModelWire = {
  matches: (path) => path.endsWith('/responses'),
  read: ({ tools, input }) => ({
    tools: list(tools).flatMap((tool) =>
      tool['type'] === 'namespace'
        ? list(tool['tools']).map((inner) => ({ ...offered(inner), namespace: asText(tool['name']) }))
        : [offered(tool)],
    ),
    outputs: list(input)
      .filter(({ type }) => type === 'function_call_output')
      .map(({ output }) => asText(output)),
  }),
  write(turn) {
    const id = 'response-1'
    const item =
      'say' in turn
        ? { type: 'message', id: 'message-1', role: 'assistant', content: [{ type: 'output_text', text: turn.say }] }
        : {
            type: 'function_call',
            id: 'item-1',
            call_id: 'call-1',
            name: turn.call.name,
            ...(turn.call.namespace === undefined ? {} : { namespace: turn.call.namespace }),
            arguments: json(turn.args),
          }
    const usage = { input_tokens: USAGE_TOKENS, output_tokens: USAGE_TOKENS, total_tokens: 2 * USAGE_TOKENS }
    const events = [
      { type: 'response.created', response: { id } },
      { type: 'response.output_item.done', output_index: 0, item },
      { type: 'response.completed', response: { id, output: [item], usage } },
    ]
    return {
      type: 'text/event-stream',
      text: events.map((event) => `event: ${event.type}\ndata: ${json(event)}\n\n`).join(''),
    }
  },
}

function offered(tool: Json): OfferedTool {
  return { name: asText(tool['name']), schema: (tool['parameters'] ?? {}) as Json }
}

/** OpenAI Chat Completions, streamed or not (opencode). */
export const chatCompletions: ModelWire = {
  matches: (path) => path.endsWith('/chat/completions'),
  read: ({ tools, messages }) => ({
    tools: list(tools).map((tool) => offered((tool['function'] ?? {}) as Json)),
    outputs: list(messages)
      .filter(({ role }) => role === 'tool')
      .map(({ content }) => asText(content)),
  }),
  write(turn, { stream }) {
    const finish = 'say' in turn ? 'stop' : 'tool_calls'
    const usage = { prompt_tokens: USAGE_TOKENS, completion_tokens: USAGE_TOKENS, total_tokens: 2 * USAGE_TOKENS }
    const message =
      'say' in turn
        ? { role: 'assistant', content: turn.say }
        : {
            role: 'assistant',
            content: null,
            tool_calls: [
              {
                index: 0,
                id: 'call-1',
                type: 'function',
                function: { name: turn.call.name, arguments: json(turn.args) },
              },
            ],
          }
    const head = { id: 'chat-1', created: 0, model: 'mock-model' }
    if (stream !== true) {
      const choices = [{ index: 0, message, finish_reason: finish }]
      return { type: 'application/json', text: json({ ...head, object: 'chat.completion', choices, usage }) }
    }
    const chunks = [
      { ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta: message, finish_reason: null }] },
      { ...head, object: 'chat.completion.chunk', choices: [{ index: 0, delta: {}, finish_reason: finish }], usage },
    ]
    const text = [...chunks.map(json), '[DONE]'].map((data) => `data: ${data}\n\n`).join('')
    return { type: 'text/event-stream', text }
  },
}

/** Gemini, streamed or not (gemini-cli). */
export const gemini: ModelWire = {
  matches: (path) => /:(stream)?generateContent/i.test(path),
  read: ({ tools, contents }) => ({
    tools: list(tools)
      .flatMap(({ functionDeclarations }) => list(functionDeclarations))
      .map((tool) => ({
        name: asText(tool['name']),
        schema: (tool['parametersJsonSchema'] ?? tool['parameters'] ?? {}) as Json,
      })),
    outputs: list(contents)
      .flatMap(({ parts }) => list(parts))
      .flatMap(({ functionResponse }) => (functionResponse === undefined ? [] : [asText(functionResponse)])),
  }),
  write(turn, _body, path) {
    const part = 'say' in turn ? { text: turn.say } : { functionCall: { name: turn.call.name, args: turn.args } }
    const candidate = { content: { role: 'model', parts: [part] }, finishReason: 'STOP', index: 0 }
    const usageMetadata = {
      promptTokenCount: USAGE_TOKENS,
      candidatesTokenCount: USAGE_TOKENS,
      totalTokenCount: 2 * USAGE_TOKENS,
    }
    const answer = json({ candidates: [candidate], usageMetadata, modelVersion: 'mock-model' })
    return path.includes('stream')
      ? { type: 'text/event-stream', text: `data: ${answer}\n\n` }
      : { type: 'application/json', text: answer }
  },
}
