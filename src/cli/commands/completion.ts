// berth completion
import { defineCommand } from '../kit/command.ts';
import { UsageError } from '../kit/exit_codes.ts';

/** Each script passes the words so far to `berth __complete`; `:file` in its output stands for file names. */
const COMPLETION_SCRIPTS = {
  bash: `# berth completion for bash: source <(berth completion bash)
_berth() {
  local value about
  COMPREPLY=()
  while IFS=$'\\t' read -r value about; do
    if [[ $value == :file ]]; then compopt -o default; else COMPREPLY+=("$value"); fi
  done < <(berth __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _berth berth
`,
  zsh: `#compdef berth
# berth completion for zsh: source <(berth completion zsh), after compinit
_berth() {
  local value about
  local -a values
  while IFS=$'\\t' read -r value about; do
    if [[ $value == :file ]]; then _files; else values+=("\${value//:/\\\\:}:$about"); fi
  done < <(berth __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  _describe -V berth values
}
compdef _berth berth
`,
  fish: `# berth completion for fish: berth completion fish | source
function __berth_complete
  set -l words (commandline -opc) (commandline -ct)
  for line in (berth __complete -- $words[2..-1] 2>/dev/null)
    if test "$line" = :file
      __fish_complete_path (commandline -ct)
    else
      echo $line
    end
  end
end
complete -c berth -f -a '(__berth_complete)'
`,
} as const;

const SHELLS = ['bash', 'zsh', 'fish'] as const;

export const completionCommand = defineCommand({
  about: 'The daemon supplies the names of services, groups, agents and workloads as you type.',
  args: [{ syntax: '<shell>', about: 'bash, zsh or fish', completes: SHELLS }],
  examples: [
    ['source <(berth completion bash)', 'in ~/.bashrc'],
    ['source <(berth completion zsh)', 'in ~/.zshrc, after compinit'],
    ['berth completion fish | source', 'in ~/.config/fish/config.fish'],
  ],
  run: async (context, [given = '']) => {
    const shell = SHELLS.find((one) => one === given);
    if (!shell)
      throw new UsageError(`there is no completion for ${given}`, `Known shells: ${SHELLS.join(', ')}.`);
    context.out.raw(COMPLETION_SCRIPTS[shell]);
  },
});
