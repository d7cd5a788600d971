// What the tests of this package share: definitions of real servers, and waiting for what a host tells.
import { readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type Binding,
  type CallOptions,
  type CallOutcome,
  type CatalogTool,
  createHost,
  defineServer,
  type Host,
  type HostEvent,
  type HostOptions,
  type JsonObject,
  type ServerDefinition,
  type ServerStatus,
} from '@convoke/host'
import { type Launch, type StdioScript, scriptedStdio } from '@convoke/testkit'

/** A definition of a server that is started from a launch description. */
export function stdio(
  name: string,
  { command, args, env = {} }: Launch,
  more: Partial<ServerDefinition> = {},
): ServerDefinition {
  return defineServer({ name, transport: { kind: 'stdio', command, args, env, envVars: [] }, ...more })
}

/** A scripted server as a definition. */
export function scripted(
  name: string,
  script: StdioScript = {},
  more: Partial<ServerDefinition> = {},
): ServerDefinition {
  return stdio(name, scriptedStdio(script), more)
}

/** A definition of a server behind a URL. */
export function http(
  name: string,
  url: string,
  more: Partial<ServerDefinition> = {},
  transport: object = {},
): ServerDefinition {
  return defineServer({ name, transport: { kind: 'http', url, headers: {}, envHeaders: {}, ...transport }, ...more })
}

/** A host with everything it told. */
export async function hostOf(
  definitions: readonly ServerDefinition[],
  options: Omit<HostOptions, 'definitions'> = {},
): Promise<{ host: Host; events: HostEvent[] }> {
  const events: HostEvent[] = []
  const host = await createHost({ ...options, definitions })
  host.subscribe((event) => events.push(event))
  return { host, events }
}

/** Resolves with the first event that fits, already told ones included only if the listener was there. Bounded by the test's own limit. */
export function eventOf<Kind extends HostEvent['kind']>(
  host: Host,
  kind: Kind,
  fits: (event: Extract<HostEvent, { kind: Kind }>) => boolean = () => true,
): Promise<Extract<HostEvent, { kind: Kind }>> {
  return new Promise((resolve) => {
    const stop = host.subscribe((event) => {
      if (event.kind !== kind || !fits(event as Extract<HostEvent, { kind: Kind }>)) return
      stop()
      resolve(event as Extract<HostEvent, { kind: Kind }>)
    })
  })
}

/** Resolves when the server is in the state, now or later. */
export async function stateOf(host: Host, server: string, state: ServerStatus['state']): Promise<ServerStatus> {
  const now = statusOf(host, server)
  if (now.state === state) return now
  return (await eventOf(host, 'server.state-changed', ({ status }) => status.name === server && status.state === state))
    .status
}

export function statusOf(host: Host, server: string): ServerStatus {
  const status = host.statuses.find(({ name }) => name === server)
  if (status === undefined) throw new Error(`no server "${server}"`)
  return status
}

/** Does the process run? One that only waits to be collected by its parent does not. */
export function isAlive(pid: number | undefined): boolean {
  if (pid === undefined) return false
  try {
    process.kill(pid, 0)
    return !/\) Z /.test(readFileSync(`/proc/${pid}/stat`, 'utf8'))
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' && process.platform !== 'linux'
  }
}

/** The tool that a text names. */
export function toolOf(binding: Binding, text: string): CatalogTool {
  const resolution = binding.resolveTool(text)
  if (resolution.kind !== 'found') throw new Error(`${text}: ${resolution.kind}`)
  return resolution.tool
}

/** Calls what a text names. */
export function callTool(
  binding: Binding,
  text: string,
  args: JsonObject = {},
  options: CallOptions = {},
): Promise<CallOutcome> {
  return binding.call(toolOf(binding, text), args, options)
}

/** The first text of a result. */
export function textIn(outcome: CallOutcome): string {
  if (!('result' in outcome)) throw outcome.error
  return String(outcome.result.content[0]?.['text'])
}

/** What the scripted server has seen. */
export async function seenBy(binding: Binding, server: string): Promise<Seen> {
  return JSON.parse(textIn(await callTool(binding, `${server}/seen`))) as Seen
}

/** The answer of the scripted tool `seen`. */
export interface Seen {
  readonly pid: number
  readonly requests: readonly string[]
  readonly cancelled: readonly unknown[]
  readonly calls: Readonly<Record<string, number>>
  readonly meta?: JsonObject
  readonly lastInitialize?: { readonly capabilities: JsonObject; readonly clientInfo: JsonObject }
}

/** A folder for the time of one test. */
export async function inFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'convoke-host-'))
  try {
    await use(folder)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Runs the servers once, so that what they list is known to the next host with this folder. */
export async function remember(
  cacheDirectory: string,
  definitions: readonly ServerDefinition[],
  options: Omit<HostOptions, 'definitions' | 'cacheDirectory'> = {},
): Promise<void> {
  await using host = await createHost({ ...options, definitions, cacheDirectory })
  await host.whenSettled()
}

/** States that a server was told to be in, in order. */
export function statesOf(events: readonly HostEvent[], server: string): string[] {
  return events.flatMap((event) =>
    event.kind === 'server.state-changed' && event.status.name === server ? [event.status.state] : [],
  )
}

/** Names of the tools that a binding shows, as their servers call them. */
export function rawNames({ tools }: Binding): string[] {
  return tools.map(({ server, rawName }) => `${server}/${rawName}`)
}
