// What a tool is called and said to be, beyond what its server lists: its connector's name taken off, its plugins named. Pure.
import type { CatalogConnector } from './entries.ts'
import { safeName } from './names.ts'

/** What is known of plugins when tools are shown. */
export interface Attribution {
  /** Names, for people, of the plugins that a server belongs to. */
  pluginsOfServer(server: string): readonly string[]
  /** Names, for people, of the plugins that use a connector. */
  pluginsOfConnector(connectorId: string): readonly string[]
  /** Are tools of the connector shown? */
  allowsConnector(connectorId: string): boolean
}

/** Nobody belongs to a plugin, and every connector is shown. */
export const NO_ATTRIBUTION: Attribution = {
  pluginsOfServer: () => [],
  pluginsOfConnector: () => [],
  allowsConnector: () => true,
}

/** The part of the name that stands for the tool: the connector is named by the namespace already. */
export function callableName(rawName: string, connector: CatalogConnector | undefined): string {
  if (connector === undefined) return rawName
  const safe = safeName(rawName)
  for (const prefix of [connector.name, connector.id]) {
    const wanted = prefix === undefined ? '' : safeName(prefix)
    if (wanted !== '' && safe.length > wanted.length && safe.toLowerCase().startsWith(wanted.toLowerCase()))
      return safe.slice(wanted.length)
  }
  return rawName
}

/** What a server's tools are grouped under. */
export function namespaceOf(server: string, connector: CatalogConnector | undefined): string {
  return connector?.name === undefined ? server : `${server}__${safeName(connector.name).toLowerCase()}`
}

/** A title that does not begin with the name of its connector; unless nothing would be left. */
export function shownTitle(title: string, connector: CatalogConnector | undefined): string {
  const name = connector?.name
  if (name === undefined || !title.toLowerCase().startsWith(name.toLowerCase())) return title
  const rest = title.slice(name.length).replace(/^[\s:_–—-]+/u, '')
  return rest === '' ? title : rest
}

/** A description that ends with the plugins that the tool is part of. */
export function withProvenance(description: string | undefined, plugins: readonly string[]): string | undefined {
  if (plugins.length === 0) return description
  const names = plugins.map((name) => `\`${name.replaceAll('`', "'")}\``).join(', ')
  const sentence = `This tool is part of ${plugins.length === 1 ? 'plugin' : 'plugins'} ${names}.`
  const text = (description ?? '').trim()
  if (text === '') return sentence
  return `${text}${/[.!?]$/.test(text) ? ' ' : '. '}${sentence}`
}

/** What a namespace is for: its connector says so, else its server. Blank texts say nothing. */
export function namespaceDescription(
  namespace: string,
  { connector, instructions }: { readonly connector: CatalogConnector | undefined; readonly instructions: string },
): string {
  if (connector !== undefined) {
    const { name, description } = connector
    return (
      description ?? (name === undefined ? `Tools in the ${namespace} namespace.` : `Tools for working with ${name}.`)
    )
  }
  const text = instructions.trim()
  return text === '' ? `Tools in the ${namespace} namespace.` : text
}
