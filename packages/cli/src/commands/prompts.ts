import { type CatalogPrompt, cleanLine, type JsonObject, type ServerStatus } from '@convoke/host'
import { addressedServers } from '../address.ts'
import { readArguments, readJsonObject } from '../call-arguments.ts'
import { CommandError, usageError } from '../command-error.ts'
import { readConfiguration, requireAddressed } from '../configuration.ts'
import { absentServers, notAvailable, openHost, openView, settle, sleepersFor } from '../connect.ts'
import { printContent } from '../content.ts'
import { type CommandContext, JSON_VERSION } from '../context.ts'
import { EXIT, type ExitCode } from '../exit-codes.ts'
import { defined, serverRow } from '../report.ts'
import { tellAbsent } from '../server-lines.ts'
import { isRecord } from '../signature.ts'
import { styled, type Terminal } from '../terminal.ts'
import { tellFailures, uniqueFailures } from './resources.ts'
import { NOTHING_CONFIGURED } from './tools.ts'

/** `convoke prompts`: the prompts of every server. */
export async function runPrompts(context: CommandContext): Promise<ExitCode> {
  const { options, terminal, signal } = context
  await using view = await openView(context, 'prompts')
  const { binding, statuses, servers } = view
  const { items, failures: all } = await binding.prompts({ signal, ...(servers === undefined ? {} : { servers }) })
  const failures = uniqueFailures(all)
  if (options.json) {
    const prompts = items.map(promptRow)
    terminal.json({ version: JSON_VERSION, prompts, failures, servers: statuses.map(serverRow) })
  } else {
    printPrompts(terminal, items)
    if (statuses.length === 0) terminal.notice(NOTHING_CONFIGURED)
  }
  tellFailures(terminal, failures)
  tellAbsent(terminal, view.absent)
  return view.exitCode(failures.length)
}

/** `convoke prompt`: the messages of one prompt. */
export async function runPrompt(
  context: CommandContext,
  address: string,
  words: readonly string[],
  { args: json }: { readonly args?: string },
): Promise<ExitCode> {
  const { options, terminal, signal } = context
  if (json !== undefined && words.length > 0) throw usageError('Give either --args or key=value words, not both.')
  const prepared = json === undefined ? undefined : readJsonObject(json, '--args')
  const loaded = await readConfiguration(context, [])
  const names = loaded.definitions.map((definition) => definition.name)
  requireAddressed(address, names)
  const servers = addressedServers(address, names) ?? names
  await using host = await openHost(context, loaded, { start: [] })
  const { definitions } = loaded
  const isNamed = servers.length === 1
  await settle(context, host, isNamed ? servers : sleepersFor('prompts', servers, { host, definitions }))
  await using binding = await host.bind({ grace: 'none', signal })
  const { items } = await binding.prompts({ signal, servers })
  const prompt = items.find((item) => item.name === address || `${item.server}/${item.rawName}` === address)
  if (prompt === undefined)
    throw unknownPrompt(address, items, absentServers(host.statuses.filter(({ name }) => servers.includes(name))))
  const args = prepared ?? readArguments(words, schemaOf(prompt))
  const result = await binding.getPrompt(prompt.name, args, { signal })
  const messages = Array.isArray(result['messages']) ? result['messages'] : []
  const { description } = result
  if (options.json) terminal.json({ version: JSON_VERSION, ...defined({ description }), messages })
  else printMessages(terminal, messages)
  return EXIT.ok
}

function unknownPrompt(
  address: string,
  items: readonly CatalogPrompt[],
  absent: readonly ServerStatus[],
): CommandError {
  const [first] = absent
  if (items.length === 0 && first !== undefined) return notAvailable(first)
  const known = items.slice(0, 10).map(({ server, rawName }) => `${server}/${rawName}`)
  const hint = known.length === 0 ? '' : ` There are ${known.join(', ')}.`
  return new CommandError(EXIT.usage, 'PROMPT_UNKNOWN', `There is no prompt ${JSON.stringify(address)}.${hint}`)
}

/** The declared arguments of a prompt as a schema of texts, the only type they have. */
function schemaOf({ definition }: CatalogPrompt): JsonObject {
  const declared = Array.isArray(definition['arguments']) ? definition['arguments'].filter(isRecord) : []
  const names = declared.map((argument) => String(argument['name']))
  return {
    properties: Object.fromEntries(names.map((name) => [name, { type: 'string' }])),
    required: declared.filter((argument) => argument['required'] === true).map((argument) => String(argument['name'])),
  }
}

function promptRow({ name, server, rawName, title, description, definition }: CatalogPrompt): object {
  return { name, server, rawName, ...defined({ title, description, arguments: definition['arguments'] }) }
}

function printPrompts(terminal: Terminal, prompts: readonly CatalogPrompt[]): void {
  for (const server of new Set(prompts.map((prompt) => prompt.server))) {
    terminal.print(styled('bold', cleanLine(server)))
    for (const { rawName, title, description, definition } of prompts.filter((prompt) => prompt.server === server)) {
      const declared = Array.isArray(definition['arguments']) ? definition['arguments'].filter(isRecord) : []
      const list = declared.map((argument) => `${String(argument['name'])}${argument['required'] === true ? '' : '?'}`)
      const address = cleanLine(`${server}/${rawName}(${list.join(', ')})`, 400)
      terminal.print('  ', styled('cyan', address), '  ', styled('dim', cleanLine(description ?? title ?? '', 160)))
    }
  }
}

function printMessages(terminal: Terminal, messages: readonly unknown[]): void {
  for (const message of messages) {
    if (!isRecord(message)) continue
    terminal.print(styled('bold', `${cleanLine(String(message['role']), 40)}:`))
    printContent(terminal, [message['content']].flat())
  }
}
