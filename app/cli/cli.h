// SPDX-License-Identifier: Apache-2.0
// The commands that print and end. Each takes its name and arguments and returns the program's exit code.
#ifndef APP_CLI_CLI_H
#define APP_CLI_CLI_H

// Of a device (its kind) that this machine lacks.
#define CLI_PLANS_WITHOUT "headroom plan PRESET -s device.kind=%s -s device.card=h200-141g"

int cli_workbench(int argc, char **argv); // argv[0] is "": started without a command
int cli_run(int argc, char **argv);
int cli_plan(int argc, char **argv);
int cli_fit(int argc, char **argv);
int cli_explain(int argc, char **argv);
int cli_compare(int argc, char **argv);
int cli_replay(int argc, char **argv);
int cli_pack(int argc, char **argv);
int cli_script(int argc, char **argv);
int cli_lesson(int argc, char **argv);
int cli_presets(int argc, char **argv);
int cli_cards(int argc, char **argv);
int cli_devices(int argc, char **argv);
int cli_knobs(int argc, char **argv);
int cli_terms(int argc, char **argv);
int cli_config(int argc, char **argv);
int cli_export(int argc, char **argv);
int cli_doctor(int argc, char **argv);
int cli_watch(int argc, char **argv);
int cli_manual(int argc, char **argv);
int cli_completion(int argc, char **argv);

#endif
