import type { Requirement } from './requirement.ts'

const milestone = 1

export const config: readonly Requirement[] = [
  { id: 'config.001', milestone, text: 'reads convoke.json with comments, trailing commas and a byte order mark' },
  {
    id: 'config.002',
    milestone,
    text: 'reports every problem of a file at once, each with file, line, column, server and field, and loads the good servers',
  },
  { id: 'config.003', milestone, text: 'loads the servers whose own text is whole when the file has syntax errors' },
  {
    id: 'config.004',
    milestone,
    text: 'warns of an unknown key, names the one that was meant, and loads the server without it',
  },
  { id: 'config.005', milestone, text: 'reads every field of an entry and fills in the documented defaults' },
  {
    id: 'config.006',
    milestone,
    text: 'refuses a repeated server name, a repeated field and a field that differs only in case',
  },
  { id: 'config.007', milestone, text: 'refuses a field of the other transport, and a command beside an address' },
  {
    id: 'config.008',
    milestone,
    text: 'expands variables and a leading tilde in args, env, headers, cwd, ca, path and query of the address and helper arguments',
  },
  {
    id: 'config.009',
    milestone,
    text: 'refuses a variable in a field where none is expanded, naming the field, instead of sending it as it stands',
  },
  {
    id: 'config.010',
    milestone,
    text: 'switches off only the server whose variable is missing, naming file, line, column, field and variable',
  },
  {
    id: 'config.011',
    milestone,
    text: 'treats an input that only an editor can ask for as a need for input, not as a fault',
  },
  { id: 'config.012', milestone, text: 'tells that %NAME% and $NAME are passed on as they stand' },
  {
    id: 'config.013',
    milestone,
    text: 'understands the spellings of other clients where they mean one thing, and says so where they do not',
  },
  { id: 'config.014', milestone, text: 'ignores a pasted approval and says so' },
  {
    id: 'config.015',
    milestone,
    text: 'merges the user file and the file of --config by server name, the later one winning whole, and keeps where each came from',
  },
  {
    id: 'config.016',
    milestone,
    text: 'accepts any printable server name up to 128 characters and refuses the others',
  },
  {
    id: 'config.017',
    milestone,
    text: 'refuses values outside their limits, and limits file size, servers, items and nesting',
  },
  {
    id: 'config.018',
    milestone,
    text: 'adds and removes an entry without touching comments, order, line ends or mode of the file',
  },
  { id: 'config.019', milestone, text: 'loses no entry when several processes edit one file at the same time' },
  { id: 'config.020', milestone, text: 'leaves a damaged file as it is and says where it is damaged' },
  { id: 'config.021', milestone, text: 'publishes a JSON Schema that is made from the definition that reads the file' },
  { id: 'config.022', milestone, text: 'says which file it could not read and why, and uses the others' },
  { id: 'config.023', milestone, text: 'finds the configuration, state and cache places of each system' },
  { id: 'config.024', milestone, text: 'starts relative paths of an entry at the folder of its file' },
  {
    id: 'security.100',
    milestone,
    text: 'refuses a token that stands in the configuration file and never shows a value in a problem',
  },
  { id: 'security.101', milestone, text: 'never looks again at what an expansion put in' },
  { id: 'security.102', milestone, text: 'keeps an expanded value inside the part of the address it stands in' },
  { id: 'security.103', milestone, text: 'treats keys such as __proto__ as data in every part of the configuration' },
  { id: 'security.104', milestone, text: 'warns of server names that look like another one' },
  { id: 'security.105', milestone, text: 'neither waits for a pipe in place of the file nor reads a file without end' },
  {
    id: 'security.106',
    milestone,
    text: 'creates configuration files for their owner only and follows a symbolic link instead of replacing it',
  },
  {
    id: 'security.107',
    milestone,
    text: 'lets only the own configuration file believe hints of a server or lend an account',
  },
  { id: 'security.108', milestone, text: 'bounds what expansion can produce' },
  {
    id: 'security.109',
    milestone,
    text: 'uses no server of a damaged file with a part of its settings',
  },
]
