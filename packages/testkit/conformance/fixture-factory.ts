// One server for both eras, on the low-level server of SDK v2: the fixture that the conformance suite looks for.
import { randomBytes } from 'node:crypto'
import {
  createRequestStateCodec,
  ProtocolError,
  type RequestStateCodec,
  Server,
  type ServerNotifier,
} from '@modelcontextprotocol/server'
import { askingTools, type RoundState } from './fixture-asking.ts'
import { getPrompt, prompts, readResource, resources, resourceTemplates } from './fixture-content.ts'
import { type FixtureTool, plainTools } from './fixture-tools.ts'

const INVALID_PARAMS = -32602
const COMPLETIONS = ['paris', 'park', 'party', 'alpha', 'beta']

/** What all instances of one fixture share. */
export interface Fixture {
  /** Makes an instance for a request, a session or a connection. */
  build(): Server
  /** Where changes are told to streams of the stateless era; set by whoever serves it. */
  notifier: ServerNotifier | undefined
  /** Instances of the session era that get list changes pushed. */
  readonly live: Set<Server>
}

/** A fresh fixture with a signing key of its own. */
export function createFixture(): Fixture {
  const codec = createRequestStateCodec<RoundState>({ key: randomBytes(32) })
  const fixture: Fixture = {
    build: () => buildServer(tools, codec),
    notifier: undefined,
    live: new Set(),
  }
  const changed = async (what: 'tools' | 'prompts'): Promise<void> => {
    if (what === 'tools') fixture.notifier?.toolsChanged()
    else fixture.notifier?.promptsChanged()
    for (const server of fixture.live) {
      await (what === 'tools' ? server.sendToolListChanged() : server.sendPromptListChanged())
    }
  }
  const tools = new Map([...plainTools(changed), ...askingTools(codec)].map((tool) => [tool.definition.name, tool]))
  return fixture
}

function buildServer(tools: ReadonlyMap<string, FixtureTool>, codec: RequestStateCodec<RoundState>): Server {
  const server = new Server(
    { name: 'convoke-fixture', version: '1.0.0' },
    {
      capabilities: {
        tools: { listChanged: true },
        prompts: { listChanged: true },
        resources: { subscribe: true, listChanged: true },
        completions: {},
        logging: {},
      },
      instructions: 'A fixture: every tool does what its name says.',
      requestState: { verify: codec.verify },
    },
  )
  server.setRequestHandler('tools/list', () => ({ tools: [...tools.values()].map(({ definition }) => definition) }))
  server.setRequestHandler('tools/call', async ({ params }, context) => {
    const tool = tools.get(params.name)
    if (tool === undefined) throw new ProtocolError(INVALID_PARAMS, `Unknown tool: ${params.name}`)
    return await tool.run(params.arguments ?? {}, context)
  })
  server.setRequestHandler('resources/list', () => ({ resources }))
  server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates }))
  server.setRequestHandler('resources/read', ({ params }) => readResource(params.uri))
  server.setRequestHandler('resources/subscribe', () => ({}))
  server.setRequestHandler('resources/unsubscribe', () => ({}))
  server.setRequestHandler('prompts/list', () => ({ prompts }))
  server.setRequestHandler('prompts/get', ({ params }, context) =>
    getPrompt(params.name, params.arguments ?? {}, context),
  )
  server.setRequestHandler('completion/complete', ({ params }) => {
    const values = COMPLETIONS.filter((word) => word.startsWith(params.argument.value))
    return { completion: { values, total: values.length, hasMore: false } }
  })
  return server
}
