// A gateway over real servers, in this process, and clients for it.

import { type Gateway, type GatewayOptions, gatewayHandlers, serveGateway } from '@convoke/gateway'
import { createHost, type Host, type HostOptions, type ServerDefinitionInput } from '@convoke/host'
import { type JsonObject, type ServerRequestHandler, Session } from '@convoke/wire'
import { definitionsOf, type ServerEntry } from './entries.ts'

export interface OpenOptions {
  readonly servers: Readonly<Record<string, ServerEntry>>
  readonly overrides?: Readonly<Record<string, Partial<ServerDefinitionInput>>>
  readonly options?: Partial<GatewayOptions>
  readonly host?: Partial<HostOptions>
}

export interface Opened extends AsyncDisposable {
  readonly host: Host
  readonly gateway: Gateway
  readonly url: string
  readonly port: number
}

/** Host and gateway; `await using` closes both. */
export async function open({
  servers,
  overrides = {},
  options = {},
  host: hostOptions = {},
}: OpenOptions): Promise<Opened> {
  const definitions = definitionsOf(servers, overrides)
  const host = await createHost({ definitions, handlers: gatewayHandlers, writeBurst: 'turn', ...hostOptions })
  try {
    const gateway = await serveGateway(host, options)
    const url = gateway.url ?? ''
    return {
      host,
      gateway,
      url,
      port: Number(new URL(url).port),
      async [Symbol.asyncDispose]() {
        await gateway.close({ drainMs: 100 })
        await host.close()
      },
    }
  } catch (error) {
    await host.close()
    throw error
  }
}

export interface ClientOptions {
  readonly handlers?: Record<string, ServerRequestHandler>
  readonly capabilities?: JsonObject
  readonly name?: string
  readonly token?: string
}

/** One notification, as a client heard it. */
export interface Heard {
  readonly method: string
  readonly params: JsonObject
}

export type Client = Session & { readonly heard: Heard[]; until(test: () => boolean): Promise<void> }

/** A client of either era: the client half of the wire. */
export async function connect(
  url: string,
  era: 'legacy' | 'modern',
  { handlers = {}, capabilities, name = era, token }: ClientOptions = {},
): Promise<Client> {
  const heard: Heard[] = []
  const waiting: { test: () => boolean; resolve: () => void }[] = []
  const session = await Session.connect({
    target: { kind: 'http', url, ...(token === undefined ? {} : { headers: { authorization: `Bearer ${token}` } }) },
    era,
    clientInfo: { name, version: '1' },
    handlers,
    capabilities: capabilities ?? declaredFor(handlers),
    onNotification: (method, params) => {
      heard.push({ method, params })
      for (const { test, resolve } of [...waiting]) if (test()) resolve()
    },
  })
  const until = (test: () => boolean): Promise<void> =>
    test() ? Promise.resolve() : new Promise((resolve) => waiting.push({ test, resolve }))
  return Object.assign(session, { heard, until })
}

function declaredFor(handlers: Record<string, ServerRequestHandler>): JsonObject {
  return {
    ...('elicitation/create' in handlers ? { elicitation: { form: {}, url: {} } } : {}),
    ...('sampling/createMessage' in handlers ? { sampling: {} } : {}),
    ...('roots/list' in handlers ? { roots: {} } : {}),
  }
}

/** The first text of a tool result. */
export function textOf(result: JsonObject): string {
  return (result['content'] as { text?: string }[] | undefined)?.[0]?.text ?? ''
}

/** What a scripted server has received, from its own tool. */
export async function seenBy(
  client: Session,
  server: string,
): Promise<{
  pid: number
  requests: string[]
  cancelled: unknown[]
  calls: Record<string, number>
  logLevel?: string
  meta?: JsonObject
  lastInitialize?: JsonObject
}> {
  return JSON.parse(textOf(await client.callTool(server === '' ? 'seen' : `${server}__seen`)))
}

export const ERAS = ['legacy', 'modern'] as const
