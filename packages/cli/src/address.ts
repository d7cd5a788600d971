// Which servers a tool or prompt address can mean, before any of them is started. Pure.

/**
 * The servers to start for an address: the one whose name is the longest that `text` begins with before a `/`; for a flat name
 * (`SERVER__TOOL`) those whose cleaned name it begins with. Undefined: any of them could be meant.
 */
export function addressedServers(text: string, names: readonly string[]): readonly string[] | undefined {
  const spelled = names.filter((name) => text.startsWith(`${name}/`)).sort((a, b) => b.length - a.length)
  const [longest] = spelled
  if (longest !== undefined) return [longest]
  const flat = names.filter((name) => text.startsWith(`${flatName(name)}__`))
  return flat.length > 0 ? flat : undefined
}

/** Does `text` spell this tool's flat name as it is before it is cut or told apart from others? */
export function spellsFlatName(text: string, { server, rawName }: { server: string; rawName: string }): boolean {
  return text === `${flatName(server)}__${flatName(rawName)}`
}

const flatName = (name: string): string => name.replace(/[^A-Za-z0-9_-]/gu, '_')
