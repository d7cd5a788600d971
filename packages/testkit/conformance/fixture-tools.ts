// The plain tools under the names that the conformance suite calls.
import { setTimeout as pause } from 'node:timers/promises'
import {
  type CallToolResult,
  type ElicitRequestFormParams,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type ServerContext,
  type Tool,
} from '@modelcontextprotocol/server'
import { PNG, WAV } from './fixture-content.ts'

/** A tool as it is listed, and what it does. */
export interface FixtureTool {
  readonly definition: Tool
  run(
    args: Readonly<Record<string, unknown>>,
    context: ServerContext,
  ): CallToolResult | InputRequiredResult | Promise<CallToolResult | InputRequiredResult>
}

const STEP_MS = 50
const nothing = { type: 'object' } as const

const said = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] })

function plain(name: string, description: string, run: FixtureTool['run']): FixtureTool {
  return { definition: { name, description, inputSchema: nothing }, run }
}

function constant(name: string, description: string, result: CallToolResult): FixtureTool {
  return plain(name, description, () => result)
}

async function withProgress(context: ServerContext): Promise<CallToolResult> {
  const progressToken = context.mcpReq._meta?.progressToken
  for (const [index, progress] of [0, 50, 100].entries()) {
    if (index > 0) await pause(STEP_MS)
    if (progressToken !== undefined) {
      await context.mcpReq.notify({
        method: 'notifications/progress',
        params: { progressToken, progress, total: 100 },
      })
    }
  }
  return said('Progress told')
}

async function withLogging(context: ServerContext): Promise<CallToolResult> {
  for (const [index, text] of [
    'Tool execution started',
    'Tool processing data',
    'Tool execution completed',
  ].entries()) {
    if (index > 0) await pause(STEP_MS)
    await context.mcpReq.log('info', text)
  }
  return said('Logged three messages')
}

/** Asks the person by a form; for clients of the session era the SDK turns the question into a request of its own. */
function elicited(
  context: ServerContext,
  params: ElicitRequestFormParams,
  told: (action: string, content: string) => string,
): CallToolResult | InputRequiredResult {
  const view = inputResponse(context.mcpReq.inputResponses, 'form')
  if (view.kind === 'elicit') return said(told(view.action, JSON.stringify(view.content ?? {})))
  return inputRequired({ inputRequests: { form: inputRequired.elicit(params) } })
}

const completed = (action: string, content: string): string =>
  `Elicitation completed: action=${action}, content=${content}`

const media: FixtureTool[] = [
  constant('test_simple_text', 'Gives a text', said('This is a simple text response for testing.')),
  constant('test_image_content', 'Gives a picture', {
    content: [{ type: 'image', data: PNG, mimeType: 'image/png' }],
  }),
  constant('test_audio_content', 'Gives a sound', { content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] }),
  constant('test_embedded_resource', 'Gives a resource', {
    content: [
      {
        type: 'resource',
        resource: {
          uri: 'test://embedded-resource',
          mimeType: 'text/plain',
          text: 'This is an embedded resource content.',
        },
      },
    ],
  }),
  constant('test_multiple_content_types', 'Gives a text, a picture and a resource', {
    content: [
      { type: 'text', text: 'Multiple content types test:' },
      { type: 'image', data: PNG, mimeType: 'image/png' },
      {
        type: 'resource',
        resource: {
          uri: 'test://mixed-content-resource',
          mimeType: 'application/json',
          text: '{"test":"data","value":123}',
        },
      },
    ],
  }),
  constant('test_error_handling', 'Goes wrong', {
    content: [{ type: 'text', text: 'This tool intentionally returns an error for testing' }],
    isError: true,
  }),
]

/** What clients are asked in the middle of a call. */
const asking: FixtureTool[] = [
  {
    definition: {
      name: 'test_sampling',
      description: 'Asks the model of the client',
      inputSchema: { type: 'object', properties: { prompt: { type: 'string' } }, required: ['prompt'] },
    },
    run({ prompt }, context) {
      const view = inputResponse(context.mcpReq.inputResponses, 'answer')
      if (view.kind === 'sampling') {
        const { content } = view.result
        return said(`LLM response: ${'text' in content ? content.text : JSON.stringify(content)}`)
      }
      const messages = [{ role: 'user' as const, content: { type: 'text' as const, text: String(prompt) } }]
      return inputRequired({ inputRequests: { answer: inputRequired.createMessage({ messages, maxTokens: 100 }) } })
    },
  },
  {
    definition: {
      name: 'test_elicitation',
      description: 'Asks the person',
      inputSchema: { type: 'object', properties: { message: { type: 'string' } }, required: ['message'] },
    },
    run({ message }, context) {
      const properties = {
        username: { type: 'string', description: "User's response" },
        email: { type: 'string', description: "User's email address" },
      } as const
      const requestedSchema = { type: 'object' as const, properties, required: ['username', 'email'] }
      return elicited(
        context,
        { message: String(message), requestedSchema },
        (action, content) => `User response: action: ${action}, content: ${content}`,
      )
    },
  },
  plain('test_elicitation_sep1034_defaults', 'Asks with a default in every field', (_args, context) =>
    elicited(
      context,
      {
        message: 'Please check the values',
        requestedSchema: {
          type: 'object',
          properties: {
            name: { type: 'string', default: 'John Doe' },
            age: { type: 'integer', default: 30 },
            score: { type: 'number', default: 95.5 },
            status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
            verified: { type: 'boolean', default: true },
          },
        },
      },
      completed,
    ),
  ),
  plain('test_elicitation_sep1330_enums', 'Asks with every kind of choice', (_args, context) =>
    elicited(
      context,
      {
        message: 'Please choose',
        requestedSchema: {
          type: 'object',
          properties: {
            untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
            titledSingle: {
              type: 'string',
              oneOf: [
                { const: 'value1', title: 'First Option' },
                { const: 'value2', title: 'Second Option' },
                { const: 'value3', title: 'Third Option' },
              ],
            },
            legacyEnum: {
              type: 'string',
              enum: ['opt1', 'opt2', 'opt3'],
              enumNames: ['Option One', 'Option Two', 'Option Three'],
            },
            untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
            titledMulti: {
              type: 'array',
              items: {
                anyOf: [
                  { const: 'value1', title: 'First Choice' },
                  { const: 'value2', title: 'Second Choice' },
                  { const: 'value3', title: 'Third Choice' },
                ],
              },
            },
          },
        },
      },
      completed,
    ),
  ),
]

const schemaTool: FixtureTool = {
  definition: {
    name: 'json_schema_2020_12_tool',
    description: 'Tool with JSON Schema 2020-12 features',
    inputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: {
          $anchor: 'addressDef',
          type: 'object',
          properties: { street: { type: 'string' }, city: { type: 'string' } },
        },
      },
      properties: {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' },
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      // biome-ignore lint/suspicious/noThenProperty: a keyword of JSON Schema.
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
  },
  run: (args) => said(JSON.stringify(args)),
}

/** `changed` says to every listening client that a list is another one now. */
export function plainTools(changed: (what: 'tools' | 'prompts') => Promise<void>): FixtureTool[] {
  return [
    ...media,
    {
      definition: {
        name: 'echo',
        description: 'Gives the text back',
        inputSchema: { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] },
      },
      run: ({ text }) => said(String(text)),
    },
    plain('test_tool_with_logging', 'Writes three log messages', (_args, context) => withLogging(context)),
    plain('test_logging_tool', 'Writes log messages where they are wanted', (_args, context) => withLogging(context)),
    plain('test_tool_with_progress', 'Tells its progress', (_args, context) => withProgress(context)),
    plain('test_reconnection', 'Closes the stream in the middle of the call', async (_args, context) => {
      context.http?.closeSSE?.()
      await pause(2 * STEP_MS)
      return said('Answered after the stream was closed')
    }),
    ...asking,
    schemaTool,
    plain('test_trigger_tool_change', 'Changes the list of tools', async () => {
      await changed('tools')
      return said('Changed')
    }),
    plain('test_trigger_prompt_change', 'Changes the list of prompts', async () => {
      await changed('prompts')
      return said('Changed')
    }),
  ]
}
