// berth __schema: the JSON Schema of berth.yaml. The build keeps it for the package.
import { projectSchema } from '../../project/project_shape.ts';
import { defineCommand } from '../kit/command.ts';

export const projectSchemaCommand = defineCommand({
  run: async (context) => {
    context.out.raw(`${JSON.stringify(projectSchema(), null, 2)}\n`);
  },
});
