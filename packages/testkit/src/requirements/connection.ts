import type { Requirement } from './requirement.ts'

/** One server and its life, many servers side by side, and how calls end. */
export const connection: readonly Requirement[] = [
  // Starting
  {
    id: 'connection.001',
    text: 'Servers start side by side: a slow one and a broken one neither delay nor hide a healthy one',
    milestone: 1,
  },
  {
    id: 'connection.002',
    text: 'A host is there at once; its healthy tools can be used while a slow server still starts, and the late one is in the next view only',
    milestone: 1,
  },
  {
    id: 'connection.003',
    text: 'One budget covers a whole start: a server that never answers tools/list fails at its startupTimeoutMs, named with the limit and what was waited for',
    milestone: 1,
  },
  {
    id: 'connection.004',
    text: 'Every server that is not ready says why, with a stable code, the server and the last thing it wrote to stderr',
    milestone: 1,
  },
  {
    id: 'connection.005',
    text: 'A polite server is started exactly once, whatever era it speaks',
    milestone: 1,
  },
  {
    id: 'connection.006',
    text: 'The era of a server is remembered across hosts in the cache directory, and forgotten when the server contradicts it',
    milestone: 1,
  },
  {
    id: 'connection.007',
    text: 'A package runner is shown as installing and has its own clock until the server itself says something',
    milestone: 1,
  },
  {
    id: 'connection.008',
    text: 'A launch that has succeeded before has no installation clock any more',
    milestone: 1,
  },
  {
    id: 'connection.009',
    text: 'Over HTTP the handshake and the listing are tried three times when the server cannot just now, and not when it refuses',
    milestone: 1,
  },
  {
    id: 'connection.010',
    text: 'A server without serverInfo is used',
    milestone: 1,
  },
  {
    id: 'connection.011',
    text: 'Lines on stdout that are no messages are counted, told once, and harm nothing',
    milestone: 1,
  },
  {
    id: 'connection.012',
    text: 'A disabled server and one whose entry has a problem are shown with the reason and never started',
    milestone: 1,
  },
  {
    id: 'connection.013',
    text: 'Servers that are not in the start list sleep until somebody names them; looking at statuses starts nothing',
    milestone: 1,
  },
  // Living and dying
  {
    id: 'connection.020',
    text: 'The crash of a ready server is noticed and told at once',
    milestone: 1,
  },
  {
    id: 'connection.021',
    text: 'A failed server is started again when it is next needed, after a pause that doubles from 1 s to 30 s, and by no timer',
    milestone: 1,
  },
  {
    id: 'connection.022',
    text: 'A view keeps to the connection it was taken from: when that is gone its calls fail, and they are never sent to a newer one',
    milestone: 1,
  },
  {
    id: 'connection.023',
    text: 'reconnect makes a new connection, leaves the others alone, and keeps the old one open for the views that hold it',
    milestone: 1,
  },
  {
    id: 'connection.024',
    text: 'close ends every server side by side, also while they start and while views are held, and leaves nothing running',
    milestone: 1,
  },
  {
    id: 'connection.025',
    text: 'What a killed host left running is ended by the next start, and told',
    milestone: 1,
  },
  {
    id: 'connection.026',
    text: 'An event that means nothing in a state changes nothing, closed is final, and every attempt that was begun is ended',
    milestone: 1,
  },
  // Calls
  {
    id: 'connection.030',
    text: 'A call carries arguments, structured content, images and links through unchanged, and tells the tool’s own error from a failed call',
    milestone: 1,
  },
  {
    id: 'connection.031',
    text: 'Progress is always asked for and told; it resets the idle limit, and the total limit holds all the same',
    milestone: 1,
  },
  {
    id: 'connection.032',
    text: 'A cancelled call settles at once as cancelled, the server is told once and lives on',
    milestone: 1,
  },
  {
    id: 'connection.033',
    text: 'A link that is lost after the request had left gives the outcome unknown, and nothing is sent again',
    milestone: 1,
  },
  {
    id: 'connection.034',
    text: 'A call whose answer was lost is sent again only for a tool that our own configuration calls idempotent',
    milestone: 1,
  },
  {
    id: 'connection.035',
    text: 'A tool that the configuration does not allow cannot be called either',
    milestone: 1,
  },
  {
    id: 'connection.036',
    text: 'Arguments that are no object are refused before anything is sent',
    milestone: 1,
  },
  {
    id: 'connection.037',
    text: 'A process that has ever asked back gets its calls one at a time; others get them together',
    milestone: 1,
  },
  {
    id: 'connection.038',
    text: 'A message over messageBytesMax fails its own call and nothing else',
    milestone: 1,
  },
  {
    id: 'connection.039',
    text: 'A capability is declared only for a handler that is given, and what a server asks reaches that handler',
    milestone: 1,
  },
  {
    id: 'connection.040',
    text: 'A dedicated connection introduces itself with the client’s capabilities and answers with the client’s handlers, beside the shared one',
    milestone: 1,
  },
  // HTTP credentials
  {
    id: 'connection.050',
    text: 'A server that asks for sign-in is shown as needs-auth with the command that signs in, and is not asked again and again',
    milestone: 1,
  },
  {
    id: 'connection.051',
    text: 'A bearer token and headers come from variables that are read at the start; a missing bearer variable names itself and nothing is sent',
    milestone: 1,
  },
  {
    id: 'connection.052',
    text: 'headersHelper supplies headers, is asked again after a refusal, and its reserved or malformed output is refused without being quoted',
    milestone: 1,
  },
  {
    id: 'connection.053',
    text: 'A host with an authorization signs in when it is refused and then starts the server',
    milestone: 1,
  },
  {
    id: 'connection.060',
    text: 'A listener that throws neither stops its neighbours nor the host',
    milestone: 1,
  },
  {
    id: 'connection.061',
    text: 'Twelve servers at once, healthy and broken, from several makers: every healthy tool is there and every other server has a reason',
    milestone: 1,
  },
  // Security that this room keeps
  {
    id: 'security.130',
    text: 'Hidden characters in tool names, descriptions, schemas and titles never reach a model or a person, and a note names server, tool, field and code points',
    milestone: 1,
    source: 'Attack class: tool poisoning and line jumping (OWASP MCP03)',
  },
  {
    id: 'security.131',
    text: 'Hidden characters in instructions, prompts, resource names, error messages, progress and logs are treated alike',
    milestone: 1,
    source: 'Attack class: tool poisoning and line jumping (OWASP MCP03)',
  },
  {
    id: 'security.132',
    text: 'Arabic, Hebrew, Devanagari and emoji with joiners come through unchanged',
    milestone: 1,
  },
  {
    id: 'security.133',
    text: 'A tool with megabytes of text is left out or cut alone; the others of its server stay',
    milestone: 1,
  },
  {
    id: 'security.134',
    text: 'Neither a server nor a caller can set a convoke key in _meta',
    milestone: 1,
  },
  {
    id: 'security.135',
    text: 'Secrets from variables and headers never appear in statuses, events or errors, even when the server prints them',
    milestone: 1,
  },
  {
    id: 'security.136',
    text: 'A hostile output schema costs a bounded time and fails no call',
    milestone: 1,
    source: 'Attack class: hostile JSON Schema (CWE-1333, CWE-400)',
  },
  {
    id: 'security.137',
    text: 'A hostile resource template costs linear time',
    milestone: 1,
    source: 'CWE-1333',
  },
]
