// Tools that ask the client before they answer (multi-round-trip requests of 2026-07-28; for older clients the SDK turns them into requests of its own).
import {
  acceptedContent,
  type CallToolResult,
  CLIENT_CAPABILITIES_META_KEY,
  type ElicitRequestFormParams,
  type InputRequests,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
  type RequestStateCodec,
  type ServerContext,
} from '@modelcontextprotocol/server'
import type { FixtureTool } from './fixture-tools.ts'

/** What the fixture keeps between rounds, signed. */
export interface RoundState {
  readonly tool: string
  readonly round: number
}

type Schema = ElicitRequestFormParams['requestedSchema']
type Answer = CallToolResult | InputRequiredResult

const nothing = { type: 'object' } as const
const nameSchema: Schema = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] }
const said = (text: string): CallToolResult => ({ content: [{ type: 'text', text }] })
const elicit = (message: string, requestedSchema: Schema): InputRequests[string] =>
  inputRequired.elicit({ message, requestedSchema })
const sample = (text: string, maxTokens: number): InputRequests[string] =>
  inputRequired.createMessage({ messages: [{ role: 'user', content: { type: 'text', text } }], maxTokens })

const questions = {
  name: () => elicit('What is your name?', nameSchema),
  capital: () => sample('What is the capital of France?', 100),
  greeting: () => sample('Generate a greeting', 50),
  confirm: () =>
    elicit('Please confirm', { type: 'object', properties: { ok: { type: 'boolean' } }, required: ['ok'] }),
  step1: () => elicit('Step 1: What is your name?', nameSchema),
  step2: () =>
    elicit('Step 2: What is your favorite color?', {
      type: 'object',
      properties: { color: { type: 'string' } },
      required: ['color'],
    }),
}

function sampled(context: ServerContext, key: string): string | undefined {
  const view = inputResponse(context.mcpReq.inputResponses, key)
  if (view.kind !== 'sampling') return undefined
  const { content } = view.result
  return 'text' in content ? content.text : JSON.stringify(content)
}

function rooted(context: ServerContext, key: string): string | undefined {
  const view = inputResponse(context.mcpReq.inputResponses, key)
  return view.kind === 'roots' ? view.roots.map(({ uri }) => uri).join(', ') : undefined
}

/** The content that a person has accepted, or nothing. */
function accepted(context: ServerContext, key: string): Record<string, unknown> | undefined {
  return acceptedContent(context.mcpReq.inputResponses, key)
}

/** The table; `codec` signs what goes through the client's hands. */
export function askingTools(codec: RequestStateCodec<RoundState>): FixtureTool[] {
  const stateOf = (context: ServerContext): RoundState | undefined => context.mcpReq.requestState<RoundState>()
  const asking = (name: string, answer: (context: ServerContext) => Answer | Promise<Answer>): FixtureTool => ({
    definition: { name, description: `Asks the client: ${name}`, inputSchema: nothing },
    run: (_args, context) => answer(context),
  })
  return [
    asking('test_input_required_result_elicitation', (context) => {
      const name = accepted(context, 'user_name')?.['name']
      return typeof name === 'string'
        ? said(`Hello, ${name}!`)
        : inputRequired({ inputRequests: { user_name: questions.name() } })
    }),
    asking('test_input_required_result_sampling', (context) => {
      const text = sampled(context, 'capital_question')
      return text !== undefined
        ? said(text)
        : inputRequired({ inputRequests: { capital_question: questions.capital() } })
    }),
    asking('test_input_required_result_list_roots', (context) => {
      const roots = rooted(context, 'client_roots')
      return roots !== undefined
        ? said(`Roots: ${roots}`)
        : inputRequired({ inputRequests: { client_roots: inputRequired.listRoots() } })
    }),
    asking('test_input_required_result_request_state', async (context) => {
      if (accepted(context, 'confirm') !== undefined && stateOf(context) !== undefined)
        return said('state-ok: confirmed')
      const requestState = await codec.mint({ tool: 'request_state', round: 1 })
      return inputRequired({ inputRequests: { confirm: questions.confirm() }, requestState })
    }),
    asking('test_input_required_result_tampered_state', async (context) => {
      if (accepted(context, 'confirm') !== undefined && stateOf(context) !== undefined)
        return said('state-ok: untouched')
      const requestState = await codec.mint({ tool: 'tampered_state', round: 1 })
      return inputRequired({ inputRequests: { confirm: questions.confirm() }, requestState })
    }),
    asking('test_input_required_result_multiple_inputs', async (context) => {
      const name = accepted(context, 'user_name')?.['name']
      const greeting = sampled(context, 'greeting')
      const roots = rooted(context, 'client_roots')
      if (name !== undefined && greeting !== undefined && roots !== undefined)
        return said(`${greeting} ${name} at ${roots}`)
      return inputRequired({
        inputRequests: {
          user_name: questions.name(),
          greeting: questions.greeting(),
          client_roots: inputRequired.listRoots(),
        },
        requestState: await codec.mint({ tool: 'multiple_inputs', round: 1 }),
      })
    }),
    asking('test_input_required_result_multi_round', (context) => multiRound(context, codec)),
    asking('test_input_required_result_capabilities', (context) => {
      const capabilities = declaredBy(context)
      const inputRequests: InputRequests = {
        ...('elicitation' in capabilities ? { user_name: questions.name() } : {}),
        ...('sampling' in capabilities ? { capital_question: questions.capital() } : {}),
      }
      return Object.keys(inputRequests).length > 0
        ? inputRequired({ inputRequests })
        : said('The client declared nothing to ask for.')
    }),
    asking('test_missing_capability', (context) => {
      const text = sampled(context, 'capital_question')
      return text !== undefined
        ? said(text)
        : inputRequired({ inputRequests: { capital_question: questions.capital() } })
    }),
    asking('test_streaming_elicitation', (context) => {
      const name = accepted(context, 'user_name')?.['name']
      return name !== undefined
        ? said(`Hello, ${String(name)}!`)
        : inputRequired({ inputRequests: { user_name: questions.name() } })
    }),
  ]
}

/** The capabilities that came with this very request. */
function declaredBy(context: ServerContext): object {
  const envelope = context.mcpReq.envelope as Readonly<Record<string, unknown>> | undefined
  const declared = envelope?.[CLIENT_CAPABILITIES_META_KEY]
  return typeof declared === 'object' && declared !== null ? declared : {}
}

async function multiRound(context: ServerContext, codec: RequestStateCodec<RoundState>): Promise<Answer> {
  const state = context.mcpReq.requestState<RoundState>()
  const color = accepted(context, 'step2')?.['color']
  if (state?.round === 2 && color !== undefined) return said(`Done: ${String(color)}`)
  if (state?.round === 1 && accepted(context, 'step1') !== undefined) {
    const requestState = await codec.mint({ tool: 'multi_round', round: 2 })
    return inputRequired({ inputRequests: { step2: questions.step2() }, requestState })
  }
  const requestState = await codec.mint({ tool: 'multi_round', round: 1 })
  return inputRequired({ inputRequests: { step1: questions.step1() }, requestState })
}
