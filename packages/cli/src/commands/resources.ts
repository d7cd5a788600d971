import { writeFile } from 'node:fs/promises'
import { type Aggregate, type CatalogResource, type CatalogResourceTemplate, cleanLine, HostError } from '@convoke/host'
import { CommandError, usageError } from '../command-error.ts'
import { notAvailable, openView } from '../connect.ts'
import { resourceLines } from '../content.ts'
import { type CommandContext, JSON_VERSION } from '../context.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { defined, serverRow } from '../report.ts'
import { tellAbsent } from '../server-lines.ts'
import { shellWord } from '../shell-word.ts'
import { isRecord } from '../signature.ts'
import { styled, type Terminal } from '../terminal.ts'
import { NOTHING_CONFIGURED } from './tools.ts'

type Failure = Aggregate<unknown>['failures'][number]

/** `convoke resources`: what every server offers to read, and its templates. */
export async function runResources(context: CommandContext): Promise<ExitCode> {
  const { options, terminal, signal } = context
  await using view = await openView(context, 'resources')
  const { binding, statuses, absent, servers } = view
  const wanted = { signal, ...(servers === undefined ? {} : { servers }) }
  const [resources, templates] = await Promise.all([binding.resources(wanted), binding.resourceTemplates(wanted)])
  const failures = uniqueFailures([...resources.failures, ...templates.failures])
  if (options.json) {
    terminal.json({
      version: JSON_VERSION,
      resources: resources.items.map((item) => ({ server: item.server, uri: item.uri, ...namesOf(item) })),
      resourceTemplates: templates.items.map((item) => ({
        server: item.server,
        uriTemplate: item.uriTemplate,
        ...namesOf(item),
      })),
      failures,
      servers: statuses.map(serverRow),
    })
  } else {
    printRows(terminal, [
      ...resources.items.map((item) => ({ ...item, address: item.uri })),
      ...templates.items.map((item) => ({ ...item, address: item.uriTemplate })),
    ])
    if (statuses.length === 0) terminal.notice(NOTHING_CONFIGURED)
  }
  tellFailures(terminal, failures)
  tellAbsent(terminal, absent)
  return view.exitCode(failures.length)
}

function namesOf({ name, title, description, mimeType }: CatalogResource | CatalogResourceTemplate): object {
  return { name, ...defined({ title, description, mimeType }) }
}

/** `convoke read`: the contents of one resource, to stdout or into a file. */
export async function runRead(
  context: CommandContext,
  uri: string,
  { output }: { readonly output?: string },
): Promise<ExitCode> {
  const { options, terminal, signal } = context
  const [server, ...more] = options.server
  if (more.length > 0) throw usageError('read takes one --server.')
  if (uri.trim() === '') throw usageError('The URI is empty; convoke resources lists them.')
  await using view = await openView(context, 'resources')
  const [absent] = view.absent
  if (server !== undefined && absent !== undefined) throw notAvailable(absent)
  const wanted = { signal, ...(server === undefined ? {} : { server }) }
  const result = await view.binding.readResource(uri, wanted).catch((error: unknown) => {
    throw readError(error, uri)
  })
  const contents = Array.isArray(result['contents']) ? result['contents'] : []
  if (output !== undefined) await writeContents(output, contents)
  else if (options.json) terminal.json({ version: JSON_VERSION, contents })
  else for (const item of contents) for (const line of resourceLines(item)) terminal.print(...line)
  return EXIT.ok
}

/** Here a server is named with an option. */
function readError(error: unknown, uri: string): unknown {
  if (!HostError.is(error)) return error
  const { code, details } = error
  const { servers } = details
  const names = Array.isArray(servers) ? servers.map((name) => shellWord(String(name))).join(', ') : ''
  if (names === '') return error
  if (code === 'RESOURCE_UNKNOWN')
    return new CommandError(EXIT.usage, code, `No server lists ${uri}. Name the one to ask with --server: ${names}`)
  if (code === 'RESOURCE_AMBIGUOUS')
    return new CommandError(EXIT.usage, code, `Several servers offer ${uri}. Name one with --server: ${names}`)
  return error
}

/** Writes exactly the bytes of the resource; several contents follow one another. */
async function writeContents(path: string, contents: readonly unknown[]): Promise<void> {
  const parts = contents.map((item) => {
    if (!isRecord(item)) return Buffer.alloc(0)
    if (typeof item['blob'] === 'string') return Buffer.from(item['blob'], 'base64')
    return Buffer.from(typeof item['text'] === 'string' ? item['text'] : '', 'utf8')
  })
  try {
    await writeFile(path, Buffer.concat(parts))
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unknown error'
    throw new CommandError(EXIT.failed, 'OUTPUT_FAILED', `${path} cannot be written (${code}).`)
  }
}

interface Row {
  readonly server: string
  readonly address: string
  readonly name: string
  readonly title?: string
  readonly description?: string
}

function printRows(terminal: Terminal, rows: readonly Row[]): void {
  for (const server of new Set(rows.map((row) => row.server))) {
    terminal.print(styled('bold', cleanLine(server)))
    for (const { address, name, title, description } of rows.filter((row) => row.server === server)) {
      const about = [title ?? name, description ?? ''].filter((text) => text !== '').join(': ')
      terminal.print('  ', styled('cyan', cleanLine(address, 2000)), '  ', styled('dim', cleanLine(about, 160)))
    }
  }
}

/** Resources and templates of one server fail alike; one line says it. */
export function uniqueFailures(failures: readonly Failure[]): readonly Failure[] {
  return [...new Map(failures.map((failure) => [`${failure.server}\0${failure.message}`, failure])).values()]
}

/** Tells, on stderr, which servers could not be asked. */
export function tellFailures(terminal: Terminal, failures: readonly Failure[]): void {
  for (const { server, message } of failures) {
    terminal.notice(styled('yellow', 'not listed: '), cleanLine(server), ': ', cleanLine(message))
  }
}
