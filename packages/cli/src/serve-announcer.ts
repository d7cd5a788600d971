// What `convoke serve` says while it runs.

import { type CatalogTool, cleanLine, type Host, type HostEvent, type ServerStatus } from '@convoke/host'
import { absentServers } from './connect.ts'
import { type CommandContext, JSON_VERSION } from './context.ts'
import { pasteLines } from './paste-lines.ts'
import { serverRow } from './report.ts'
import { reasonOf, stateText } from './server-lines.ts'
import { type Piece, styled, type Terminal } from './terminal.ts'

/** What is served, and how. */
export interface ServedFacts {
  /** Undefined over stdio. */
  readonly url: string | undefined
  readonly isSample: boolean
  readonly token: string | undefined
  readonly tokenVariable: string | undefined
}

/** Tools that are named on one line. */
const TOOLS_SHOWN_MAX = 12
/** The variable that lines to paste name when the token was made up. */
const TOKEN_VARIABLE = 'CONVOKE_TOKEN'

/** Tells of the endpoint, of the tools once the servers have settled, and of every change of a server afterwards. */
export class Announcer {
  readonly #context: CommandContext
  readonly #host: Host
  readonly #facts: ServedFacts
  readonly #unsubscribe: () => void
  #hasSettled = false

  constructor(context: CommandContext, host: Host, facts: ServedFacts) {
    this.#context = context
    this.#host = host
    this.#facts = facts
    this.#unsubscribe = host.subscribe((event) => this.#onEvent(event))
  }

  /** Says where the endpoint is; what its servers offer follows when they have settled. */
  async tellEndpoint(): Promise<void> {
    const { options, terminal, signal } = this.#context
    const { url, isSample, token, tokenVariable } = this.#facts
    if (isSample) this.#say('No configuration was found: three sample servers are served from a temporary folder.')
    if (url !== undefined) {
      if (options.json) {
        const made = token !== undefined && tokenVariable === undefined ? { token } : {}
        terminal.json({ version: JSON_VERSION, event: 'listening', endpoint: url, ...made })
      } else this.#printEndpoint(url)
    } else this.#say('Serving over stdin and stdout.')
    void this.#tellTools(signal)
  }

  /** Says that the end has begun. `callCount` calls are waited for. */
  tellEnd(callCount: number): void {
    this.#unsubscribe()
    if (callCount > 0)
      this.#say(`Ending; waiting for ${callCount === 1 ? 'one call' : `${callCount} calls`} in flight…`)
  }

  #printEndpoint(url: string): void {
    const { terminal } = this.#context
    const { token, tokenVariable } = this.#facts
    terminal.print('Serving at ', styled('bold', url))
    if (token !== undefined && tokenVariable === undefined) {
      terminal.print(`Clients must send this token, made for this run: `, styled('bold', token))
      terminal.print(styled('dim', `The lines below take it from the variable ${TOKEN_VARIABLE}.`))
    }
    terminal.print()
    const variable = token === undefined ? undefined : (tokenVariable ?? TOKEN_VARIABLE)
    const command = [process.execPath, process.argv[1] ?? 'convoke', 'serve', '--stdio', ...this.#sameServers()]
    for (const { client, where, line } of pasteLines({ url, tokenVariable: variable, command })) {
      terminal.print(styled('bold', client.padEnd(15)), styled('dim', `(${where})`))
      terminal.print('  ', line)
    }
    terminal.print()
  }

  /** The options that choose the servers, for a client that starts this command itself. */
  #sameServers(): string[] {
    const { config, server } = this.#context.options
    return [...(config === undefined ? [] : ['--config', config]), ...server.flatMap((name) => ['--server', name])]
  }

  /** Awaited by nobody: serving goes on meanwhile, and the signal ends it. */
  async #tellTools(signal: AbortSignal): Promise<void> {
    const { options, terminal } = this.#context
    try {
      await this.#host.whenSettled({ waitMs: options.wait, signal })
      if (signal.aborted) return
      this.#hasSettled = true
      const statuses = this.#host.statuses
      await using binding = await this.#host.bind({ grace: 'none', signal })
      const { tools } = binding
      if (options.json) {
        const named = tools.map(({ name, server, rawName }) => ({ name, server, rawName }))
        if (this.#facts.url !== undefined) {
          terminal.json({ version: JSON_VERSION, event: 'ready', tools: named, servers: statuses.map(serverRow) })
        }
      } else for (const status of statuses) this.#tell(...serverLine(status, tools))
      for (const status of absentServers(statuses)) this.#tellChange(status)
    } catch {
      // The host has been closed meanwhile; there is nobody to tell.
    }
  }

  #onEvent(event: HostEvent): void {
    if (event.kind !== 'server.state-changed' || !this.#hasSettled) return
    const { status } = event
    if (status.state === 'starting' || status.state === 'dormant' || status.state === 'cancelled') return
    this.#tellChange(status)
  }

  #tellChange(status: ServerStatus): void {
    this.#say(styled('bold', cleanLine(status.name)), ' is ', stateText(status.state), ...reasonOf(status))
  }

  /** Data over HTTP; over stdio, where stdout belongs to the protocol, a notice. */
  #tell(...pieces: readonly Piece[]): void {
    const { terminal } = this.#context
    if (this.#facts.url === undefined) terminal.notice(...pieces)
    else terminal.print(...pieces)
  }

  #say(...pieces: readonly Piece[]): void {
    this.#terminal.notice(...pieces)
  }

  get #terminal(): Terminal {
    return this.#context.terminal
  }
}

function serverLine(status: ServerStatus, tools: readonly CatalogTool[]): readonly Piece[] {
  const own = tools.filter(({ server }) => server === status.name).map(({ rawName }) => cleanLine(rawName, 60))
  const isAsleep = status.state === 'dormant' && own.length > 0
  if (status.state !== 'ready' && !isAsleep)
    return [styled('bold', cleanLine(status.name)), ' · ', stateText(status.state)]
  const shown = own.slice(0, TOOLS_SHOWN_MAX).join(', ')
  const more = own.length > TOOLS_SHOWN_MAX ? `, and ${own.length - TOOLS_SHOWN_MAX} more` : ''
  const count = own.length === 1 ? '1 tool' : `${own.length} tools`
  const known = isAsleep ? [' (known from before; it starts when it is needed)'] : []
  return [styled('bold', cleanLine(status.name)), ` · ${count}`, ...known, ': ', shown, more]
}
