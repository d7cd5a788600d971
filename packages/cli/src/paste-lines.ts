// How other programs are told of the endpoint, as lines to copy. Pure.

import { shellWord } from './shell-word.ts'

/** What the lines are made of. */
export interface EndpointFacts {
  readonly url: string
  /** The variable that holds the token, if clients must send one. The token itself is in no line. */
  readonly tokenVariable: string | undefined
  /** How this command is started, for clients that start their servers. */
  readonly command: readonly string[]
}

/** One client: its name, where the line goes, and the line. */
export interface PasteLine {
  readonly client: string
  readonly where: string
  readonly line: string
}

/** The line for each client. */
export function pasteLines({ url, tokenVariable, command }: EndpointFacts): readonly PasteLine[] {
  const [program, ...args] = command
  const bearer = (reference: string): object | undefined =>
    tokenVariable === undefined ? undefined : { headers: { Authorization: `Bearer ${reference}` } }
  const shellHeader = tokenVariable === undefined ? '' : ` --header "Authorization: Bearer $${tokenVariable}"`
  const codexToken = tokenVariable === undefined ? '' : ` --bearer-token-env-var ${tokenVariable}`
  return [
    { client: 'Claude Code', where: 'shell', line: `claude mcp add --transport http convoke ${url}${shellHeader}` },
    {
      client: 'Claude Desktop',
      where: 'claude_desktop_config.json',
      line: JSON.stringify({ mcpServers: { convoke: { command: program, args } } }),
    },
    {
      client: 'Cursor',
      where: '~/.cursor/mcp.json',
      line: JSON.stringify({ mcpServers: { convoke: { url, ...bearer(`\${env:${tokenVariable}}`) } } }),
    },
    {
      client: 'VS Code',
      where: 'shell',
      line: `code --add-mcp ${shellWord(JSON.stringify({ name: 'convoke', type: 'http', url, ...bearer(`\${env:${tokenVariable}}`) }))}`,
    },
    { client: 'Codex', where: 'shell', line: `codex mcp add convoke --url ${url}${codexToken}` },
  ]
}
