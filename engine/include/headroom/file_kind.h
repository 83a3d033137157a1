// SPDX-License-Identifier: Apache-2.0
// What a word that a command was given is: a preset of our own, or a file of which other program. One answer for every command.
#ifndef HEADROOM_FILE_KIND_H
#define HEADROOM_FILE_KIND_H

typedef enum hr_file_kind {
    HR_FILE_PRESET, // a preset by its name, or one of our own files (.yaml, a path that ends in nothing known), or a folder
    HR_FILE_ONNX,        // .onnx
    HR_FILE_GGUF,        // .gguf
    HR_FILE_SAFETENSORS, // .safetensors
    HR_FILE_KERAS,       // a .keras archive, or JSON with class_name and config
    HR_FILE_CONFIG,      // JSON of Hugging Face: called config.json, or with architectures or model_type
    HR_FILE_REPORT,      // JSON that headroom wrote: its schema says so
    HR_FILE_JSON,        // .json that is none of these, or cannot be read
    HR_FILE_CHECKPOINT, // called as PyTorch's pickles are (.pt, .bin, .pickle …), and no trace by what is in it
    HR_FILE_TRACE // begins as one of the traces that can be read, or is called as nothing else is (.hrt, .csv …)
} hr_file_kind;

// What is in it decides before how it is called; a file that is not there is what its name says. Any thread.
hr_file_kind hr_file_kind_of(const char *word);

#endif
