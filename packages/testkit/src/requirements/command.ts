import type { Requirement } from './requirement.ts'

const milestone = 1

export const command: readonly Requirement[] = [
  { id: 'command.001', milestone, text: 'answers --version before any other module is loaded' },
  {
    id: 'command.002',
    milestone,
    text: 'refuses to run on a Node whose decompression can be attacked, and says which to install, in syntax that every Node can read',
  },
  { id: 'command.003', milestone, text: 'explains every command, option and exit code in its help' },
  { id: 'command.004', milestone, text: 'ends with exit code 2 for a wrong command line and suggests what was meant' },
  { id: 'command.005', milestone, text: 'adds, lists, shows and removes servers without starting one' },
  { id: 'command.006', milestone, text: 'refuses to add an entry that could not be used, and a name that is taken' },
  {
    id: 'command.007',
    milestone,
    text: 'lists the tools of every healthy server and the reason of every other one, with exit code 0',
  },
  { id: 'command.008', milestone, text: 'answers the listings while a slow server still starts, within --wait' },
  { id: 'command.009', milestone, text: 'ends with exit code 3 for a partial listing under --strict' },
  { id: 'command.010', milestone, text: 'shows tools as typed signatures under the name that call takes' },
  {
    id: 'command.011',
    milestone,
    text: 'calls SERVER/TOOL, where the longest configured name wins, and the flat name',
  },
  { id: 'command.012', milestone, text: 'starts only the server of the tool it calls' },
  {
    id: 'command.013',
    milestone,
    text: 'reads key=value by the types of the tool, and takes JSON from --args, a file or stdin',
  },
  {
    id: 'command.014',
    milestone,
    text: 'ends a call with the exit code of its outcome: ok, tool error, not available, needs a person, unknown, failed',
  },
  { id: 'command.015', milestone, text: 'suggests the near servers, tools and parameters for an unknown name' },
  { id: 'command.016', milestone, text: 'shows the state of every server with its reason' },
  { id: 'command.017', milestone, text: 'lists and reads resources, and names the servers when a URI is ambiguous' },
  { id: 'command.018', milestone, text: 'lists prompts and shows the messages of one' },
  { id: 'command.019', milestone, text: 'answers every --json in the documented shape, also when it fails' },
  { id: 'command.020', milestone, text: 'keeps stdout for data and puts everything else on stderr' },
  { id: 'command.021', milestone, text: 'works with stdin at /dev/null and never asks without a terminal' },
  { id: 'command.022', milestone, text: 'asks on a terminal what a server wants to know, and declines without one' },
  { id: 'command.023', milestone, text: 'shows on a terminal which servers are awaited, and how far a call is' },
  {
    id: 'command.024',
    milestone,
    text: 'cancels the call on SIGINT and SIGTERM with exit code 130 and leaves nothing running',
  },
  { id: 'command.025', milestone, text: 'ends quietly when the reader of its output has gone' },
  { id: 'command.026', milestone, text: 'ends with exit code 4 when nothing of the configuration can be used' },
  {
    id: 'command.027',
    milestone,
    text: 'answers about twelve servers at once, good and bad, within the budget, and leaves nothing running, also after kill -9 and the next start',
  },
  {
    id: 'command.028',
    milestone,
    text: 'serves the sample servers when nothing is configured, writes no configuration, and removes its folder at the end',
  },
  {
    id: 'command.029',
    milestone,
    text: 'prints the endpoint, the tools by server and a line to paste for each client',
  },
  { id: 'command.030', milestone, text: 'drains on SIGTERM and SIGINT and ends with exit code 0' },
  { id: 'command.031', milestone, text: 'serves over stdio with nothing but protocol on stdout' },
  { id: 'command.032', milestone, text: 'serves one server under its own names with --transparent' },
  { id: 'command.033', milestone, text: 'works when its modules are packed into single files' },
  {
    id: 'security.120',
    milestone,
    text: 'lets no control character of a server, a file or a name reach the terminal, in text and in JSON',
  },
  {
    id: 'security.121',
    milestone,
    text: 'takes no secret on the command line of serve, and shows none in list and get',
  },
  { id: 'security.122', milestone, text: 'refuses to serve on any address but loopback without a token' },
  { id: 'security.123', milestone, text: 'keeps its compiled form in a folder of the person, never in a shared one' },
  { id: 'security.124', milestone, text: 'opens no address that a server sends, and answers a link only after a yes' },
  {
    id: 'security.125',
    milestone,
    text: 'reads no configuration and no variables from the folder it is started in',
  },
  { id: 'command.034', milestone, text: 'tells which tools of a server were left out or changed, and why' },
]
